import { execFileSync } from 'node:child_process'
import { availableParallelism, cpus } from 'node:os'
import { addonMissing } from './batches.js'

/** The machine and the build that figures were measured on. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly node: string
  /** ISO 8601, in UTC. */
  readonly date: string
  /** The measured commit, with `+` if files differ from it; `unknown` outside a repository. */
  readonly commit: string
  /** Whether the addon is built. If so, it decides unless a contender turns it off. */
  readonly addon: boolean
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    node: process.version,
    date: new Date().toISOString(),
    commit: commit(),
    addon: addonMissing() === undefined,
  }
}

function commit(): string {
  try {
    const hash = git('rev-parse', '--short', 'HEAD')
    return git('status', '--porcelain') === '' ? hash : `${hash}+`
  } catch {
    return 'unknown'
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}
