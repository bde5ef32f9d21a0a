// run: full
// What Fastify's router refuses by itself runs no hook: the exported handler counts and refuses it.
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { manualClock } from 'millrace'
import { type FastifyOptions, frameworkErrors, groupLimit, rateLimit } from 'millrace/fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decorate, startNest } from './nest-driver.js'
import { sendRaw } from './raw.js'
import { newestNest, newestNest11, oldest, oldestNest } from './versions.js'

const BAD_URL = '/%zz'
const ODD = [
  [BAD_URL, 400],
  ['/a/%c3%28', 400],
  [`/a/${'x'.repeat(150)}`, 414],
] as const

/** Two requests a minute. */
const options = (): FastifyOptions => ({ limit: 2, window: '1m', clock: manualClock(1e9), trustProxy: 0 })

const COUNTED: FastifyServerOptions = { frameworkErrors }

type Ask = (target: string) => Promise<{ status: number; policy: string | undefined; body: string }>

const askAt =
  (url: string): Ask =>
  async (target) => {
    const { status, header, body } = await sendRaw(url, [`GET ${target} HTTP/1.1`, 'Host: host'])
    return { status, policy: header('ratelimit-policy'), body }
  }

/** An app whose plugin is registered under a prefix. */
async function serving(
  use: (ask: Ask) => Promise<void>,
  {
    create = Fastify,
    app: appOptions = COUNTED,
    plugin = options(),
    prefix = '',
  }: { create?: typeof Fastify; app?: object; plugin?: FastifyOptions; prefix?: string },
): Promise<void> {
  const app = create({ ...appOptions, forceCloseConnections: true })
  const install = async (instance: FastifyInstance) => {
    await instance.register(rateLimit, plugin)
    instance.get('/a/:id', () => 'a')
  }
  if (prefix === '') await install(app)
  else app.register(install, { prefix })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  try {
    await use(askAt(url))
  } finally {
    await app.close()
  }
}

const VERSIONS: Readonly<Record<string, typeof Fastify>> = {
  Fastify,
  'the oldest Fastify': oldest('fastify'),
}

for (const [name, create] of Object.entries(VERSIONS)) {
  for (const [target, status] of ODD) {
    const known = create === Fastify || status !== 414 // the first version answers 404 for a long parameter
    test(`${name}: ${target.slice(0, 10)} counts together with other requests`, () =>
      serving(
        async (ask) => {
          const first = await ask(target)
          assert.is(first.status, known ? status : 404)
          assert.is(first.policy, '"default";q=2;w=60')
          assert.is((await ask('/a/1')).status, 200)
          assert.is((await ask(target)).status, 429)
          assert.is((await ask('/a/1')).status, 429)
        },
        { create },
      ))
  }

  test(`${name}: rules of routes hold for a path that can not be decoded`, () =>
    serving(
      async (ask) => {
        assert.is((await ask('/a/%zz')).policy, '"a";q=1;w=60')
        assert.is((await ask('/a/%zz')).status, 429)
        assert.is((await ask(BAD_URL)).policy, '"default";q=2;w=60')
      },
      { create, plugin: { ...options(), routes: { '/a/:id': { name: 'a', limit: 1, window: '1m' } } } },
    ))

  test(`${name}: without the handler they are not counted`, () =>
    serving(
      async (ask) => {
        for (let i = 0; i < 4; i++) assert.is((await ask(BAD_URL)).status, 400)
        assert.is((await ask('/a/1')).status, 200)
      },
      { create, app: {} },
    ))
}

test('an admitted request is answered as Fastify does, or by a function', async () => {
  const bodies: string[] = []
  const keep = async (ask: Ask) => void bodies.push((await ask(BAD_URL)).body)
  await serving(keep, {
    app: { frameworkErrors: (error: Error, _: unknown, reply: never) => send(reply, error) },
  })
  await serving(keep, {})
  assert.is(bodies[1], bodies[0])
  const app: FastifyServerOptions = {
    frameworkErrors: (error, request, reply) =>
      frameworkErrors(error, request, reply, (admitted) => admitted.code(404).send('nowhere')),
  }
  await serving(keep, { app })
  assert.is(bodies[2], 'nowhere')
})

const send = (reply: { send(error: Error): void }, error: Error) => reply.send(error)

test('a limiter under a prefix counts what is below it, and one with global: false counts none', async () => {
  await serving(
    async (ask) => {
      assert.is((await ask(BAD_URL)).policy, undefined)
      assert.is((await ask('/api/%zz')).policy, '"default";q=2;w=60')
    },
    { prefix: '/api' },
  )
  await serving(async (ask) => assert.is((await ask(BAD_URL)).policy, undefined), {
    plugin: { ...options(), global: false },
  })
})

test('a key function whose promise rejects is answered as in the plugin', async () => {
  const key = async () => {
    throw new Error('no key')
  }
  await serving(async (ask) => assert.is((await ask(BAD_URL)).status, 503), {
    plugin: { ...options(), key, onError: () => 'fail' },
  })
})

for (const [name, nest] of Object.entries({
  12: newestNest,
  11: newestNest11,
  '11, the oldest': oldestNest,
})) {
  test(`middleware of Nest ${name} on Fastify counts them as the page shows`, async () => {
    const version = await nest()
    const limited = version.millrace.rateLimit(options() as object)
    const answering = {
      frameworkErrors: (
        error: Error,
        request: { raw: never },
        reply: { raw: never; send(error: Error): void },
      ) => limited(request.raw, reply.raw, () => reply.send(error)),
    }
    class Known {
      known() {
        return 'known'
      }
    }
    version.common.Controller()(Known)
    decorate(Known, 'known', [version.common.Get('known')])
    const module = { module: class App {}, controllers: [Known] }
    const app = await startNest(version, 'fastify', module, (made) => void made.use(limited), answering)
    try {
      const ask = askAt(await app.getUrl())
      assert.equal([(await ask(BAD_URL)).status, (await ask('/x')).status], [400, 404])
      assert.equal([(await ask(BAD_URL)).status, (await ask('/x')).status], [429, 429])
    } finally {
      await app.close()
    }
  })
}

test('a plugin that is called, as the middleware of other frameworks is, says that it is a plugin', () => {
  for (const plugin of [rateLimit, groupLimit]) {
    // biome-ignore lint/suspicious/noExplicitAny: a call that the types refuse
    const call = plugin as any
    for (const args of [[options()], [Fastify(), options()]])
      assert.throws(
        () => call(...args),
        ({ code, message }: { code: string; message: string }) =>
          code === 'ERR_MILLRACE_INVALID_OPTION' && /expected app\.register\(plugin, options\)/.test(message),
      )
  }
})

test.run()
