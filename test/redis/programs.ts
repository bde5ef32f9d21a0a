// The servers that tests start: which programs they are, and whether they are installed.
import { execFileSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'

export type Program = 'redis-server' | 'memcached' | 'prometheus' | 'nginx' | 'haproxy' | 'systemd-analyze'

/** Packages of Debian with another name than their program. */
const PACKAGES: Partial<Record<Program, string>> = { 'systemd-analyze': 'systemd' }

/** Another server with the protocol of Redis, such as valkey-server: a name or a path. */
const CHOSEN = process.env.MILLRACE_REDIS_SERVER

/** The file to run. For redis-server, MILLRACE_REDIS_SERVER names another one. */
export function fileOf(program: Program): string {
  return program === 'redis-server' && CHOSEN ? CHOSEN : program
}

/** Whether the program is found. A server that MILLRACE_REDIS_SERVER names has to exist. */
export function isInstalled(program: Program): boolean {
  if (program === 'redis-server' && CHOSEN) return true
  return (process.env.PATH ?? '').split(':').some((folder) => isExecutable(join(folder, program)))
}

/** The message for a program that is missing. */
export function missing(program: Program): string {
  return `${fileOf(program)} is not installed (on Debian or Ubuntu: apt-get install -y ${PACKAGES[program] ?? program})`
}

/** The name and the version of the Redis that tests start: `{ name: 'redis', version: '7.0.15' }`. */
export function redisVersion(): { name: string; version: string } {
  const line = execFileSync(fileOf('redis-server'), ['--version'], { encoding: 'utf8' })
  const [, name, version] = /^(\w+) server v=([\d.]+)/i.exec(line) ?? []
  if (name === undefined) throw new Error(`no version in: ${line}`)
  return { name: name.toLowerCase(), version: version! }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
