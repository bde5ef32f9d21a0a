import { execFileSync } from 'node:child_process'
import { availableParallelism, cpus } from 'node:os'
import { addonMissing } from './batches.js'

/** What figures are worth nothing without. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly node: string
  /** ISO 8601, in UTC. */
  readonly date: string
  /** The commit that was measured, with `+` where files differ from it; `unknown` outside of a repository. */
  readonly commit: string
  /** Whether the addon is built: then it decides wherever a contender does not say otherwise. */
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
