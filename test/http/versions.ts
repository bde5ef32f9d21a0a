/** The frameworks in the oldest version of each range of `peerDependencies`, beside the newest, which tests import. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../package/root.js'

/** Nest in one version, with a copy of the package that uses it. */
export interface Nest {
  readonly common: typeof import('@nestjs/common')
  readonly core: typeof import('@nestjs/core')
  readonly express: typeof import('@nestjs/platform-express')
  readonly fastify: typeof import('@nestjs/platform-fastify')
  readonly millrace: typeof import('millrace/nest')
}

const OLDEST = 'test/http/oldest'
const requireFrom = (folder: string) => createRequire(join(root, folder, 'package.json'))

/** A module of the workspace with the oldest versions. */
export const oldest = (name: string) => requireFrom(OLDEST)(name)

/** The version of a module in that workspace. */
export function oldestVersionOf(name: string): string {
  return JSON.parse(readFileSync(join(root, OLDEST, 'node_modules', name, 'package.json'), 'utf8')).version
}

export async function newestNest(): Promise<Nest> {
  return {
    common: await import('@nestjs/common'),
    core: await import('@nestjs/core'),
    express: await import('@nestjs/platform-express'),
    fastify: await import('@nestjs/platform-fastify'),
    millrace: await import('millrace/nest'),
  }
}

/** The oldest Nest 11, and the newest, whose Fastify has `find-my-way` 9.7. */
export const oldestNest = (): Nest => nestIn(OLDEST)
export const newestNest11 = (): Nest => nestIn('test/http/nest11')

const nests = new Map<string, Nest>()

/** Nest of a workspace. The package finds Nest by its own place, so each has a copy. */
function nestIn(folder: string): Nest {
  const nest = nests.get(folder) ?? loadNest(folder)
  nests.set(folder, nest)
  return nest
}

function loadNest(folder: string): Nest {
  const copy = mkdtempSync(join(root, folder, 'node_modules/.millrace-'))
  process.once('exit', () => rmSync(copy, { recursive: true }))
  for (const part of ['package.json', 'dist', 'prebuilds']) {
    if (existsSync(join(root, part))) cpSync(join(root, part), join(copy, part), { recursive: true })
  }
  const load = requireFrom(folder)
  return {
    common: load('@nestjs/common'),
    core: load('@nestjs/core'),
    express: load('@nestjs/platform-express'),
    fastify: load('@nestjs/platform-fastify'),
    millrace: load(join(copy, 'dist/entries/nest.js')),
  }
}
