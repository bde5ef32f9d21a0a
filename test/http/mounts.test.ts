// run: full
// The rules of a route hold for a limiter that is mounted under a prefix, and after a path was rewritten.
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText } from '../package/root.js'
import {
  mountsOfExpress,
  mountsOfFastify,
  mountsOfHono,
  mountsOfKoa,
  mountsOfNest,
  mountsOnNode,
  rewritesOfExpress,
  rewritesOfFastify,
  rewritesOfHono,
  rewritesOfKoa,
  rewritesOfNest,
  type Serve,
} from './mounted-servers.js'
import { newestNest, newestNest11, oldest, oldestNest, oldestVersionOf } from './versions.js'

const many = { limit: 1e6, window: '1m' }

/** Serves with these rules, and calls `use` with a function that tells the rules that a request counted under. */
async function serving(
  serve: Serve,
  routes: Record<string, object | false>,
  use: (rulesOf: (path: string) => Promise<string[]>) => Promise<void>,
): Promise<void> {
  const { url, close } = await serve({ ...many, name: 'general', trustProxy: 0, routes })
  try {
    await use(async (path) => {
      const response = await fetch(url + path, { method: 'POST' })
      await response.text()
      const policy = response.headers.get('ratelimit-policy') ?? ''
      return [...policy.matchAll(/"(\w+)"/g)].map(([, rule]) => rule!)
    })
  } finally {
    await close()
  }
}

const mounts = {
  ...mountsOfExpress('Express 5', express),
  ...mountsOfExpress('the oldest Express 5', oldest('express')),
  ...mountsOfExpress('Express 4', express4),
  ...mountsOfExpress('the oldest Express 4', oldest('express4')),
  ...mountsOfKoa('Koa', Koa),
  ...mountsOfKoa('the oldest Koa', oldest('koa')),
  ...mountsOfHono('Hono', Hono),
  ...mountsOfHono('the oldest Hono', oldest('hono').Hono),
  ...mountsOfFastify('Fastify', Fastify),
  ...mountsOfFastify('the oldest Fastify', oldest('fastify')),
  ...mountsOfNest('Nest 12', newestNest),
  ...mountsOfNest('Nest 11', newestNest11),
  ...mountsOfNest('the oldest Nest 11', oldestNest),
  ...mountsOnNode,
}

for (const [name, serve] of Object.entries(mounts)) {
  for (const prefix of ['', '/api']) {
    test(`${name}: a pattern matches ${prefix === '' ? 'the path in the mount' : 'the whole path'}`, async () => {
      const login = { ...many, name: 'login' }
      const routes = { [`POST ${prefix}/login`]: login, [`${prefix}/health`]: false } as const
      await serving(serve, routes, async (rulesOf) => {
        assert.equal(await rulesOf('/api/login'), ['login'])
        assert.equal(await rulesOf('/api/login?x=/health'), ['login'])
        assert.equal(await rulesOf('/api/other'), ['general'])
        assert.equal(await rulesOf('/api/health'), [])
        for (const path of ['/api/LOGIN', '/api//login', '/api/login/', '/api/%6Cogin']) {
          const rules = await rulesOf(path)
          assert.ok(rules.includes('login'), `${path}: ${rules}`)
        }
      })
    })
  }
}

const rewrites = {
  ...rewritesOfExpress('Express 5', express),
  ...rewritesOfExpress('the oldest Express 5', oldest('express')),
  ...rewritesOfExpress('Express 4', express4),
  ...rewritesOfExpress('the oldest Express 4', oldest('express4')),
  ...rewritesOfKoa('Koa', Koa),
  ...rewritesOfKoa('the oldest Koa', oldest('koa')),
  ...rewritesOfFastify('Fastify', Fastify),
  ...rewritesOfFastify('the oldest Fastify', oldest('fastify')),
  ...rewritesOfHono('Hono', Hono),
  ...rewritesOfHono('the oldest Hono', oldest('hono').Hono),
  ...rewritesOfNest('Nest 12', newestNest),
  ...rewritesOfNest('Nest 11', newestNest11),
  ...rewritesOfNest('the oldest Nest 11', oldestNest),
}

for (const [name, serve] of Object.entries(rewrites)) {
  test(`${name}: the rules of the path that is served hold, and those of the path that was asked for`, async () => {
    const routes = {
      '/secret': { ...many, name: 'secret' },
      '/v1/old': { ...many, name: 'old' },
      '/new': { ...many, name: 'new' },
      '/health': false,
    } as const
    await serving(serve, routes, async (rulesOf) => {
      for (const path of ['/secret', '/v1/secret', '/alias']) {
        assert.equal(await rulesOf(path), ['secret'], path)
      }
      // Middleware of Nest on Fastify is not handed the target that `rewriteUrl` has replaced.
      const isKept = !name.endsWith('Fastify, middleware')
      assert.equal(await rulesOf('/v1/old'), isKept ? ['old', 'new'] : ['new'])
      assert.equal(
        await rulesOf('/health'),
        ['general'],
        'another path is served than the one without a limit',
      )
      assert.equal(await rulesOf('/other'), ['general'])
    })
  })
}

test('the oldest version of each range of the peers is installed', () => {
  const { peerDependencies } = JSON.parse(readText('package.json'))
  const names = ['express', 'fastify', 'hono', 'koa', '@nestjs/common', '@nestjs/core']
  for (const name of names) {
    const versions = peerDependencies[name]!.split(' || ').map((major: string) => `${major}.0.0`)
    const found = name === 'express' ? ['express4', 'express'] : [name]
    assert.equal(found.map(oldestVersionOf), versions.slice(0, found.length), name)
  }
})

test.run()
