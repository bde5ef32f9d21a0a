import { MillraceError } from '../core/errors.js'
import { Channel } from './channel.js'
import { clearNames } from './clear-names.js'
import { clearWatched } from './clear-watched.js'
import { connectLike, type RedisConnection, replicated } from './connection.js'
import { COUNTER_SCRIPT } from './counter-script.js'
import { kindOf } from './counting-rule.js'
import { type ClearNames, CountingStore } from './counting-store.js'
import type { KeyNames } from './key-names.js'
import { CLEAR_LOG_SCRIPT, LOG_SCRIPT } from './log-script.js'
import type { RedisPlan } from './redis-options.js'
import type { RemoteRule } from './remote-rule.js'
import type { RemoteStore } from './remote-store.js'
import { rightsProbe } from './rights-probe.js'
import { scriptOf } from './script.js'
import { ScriptRunner } from './script-runner.js'
import type { OpenedShard } from './shard.js'
import { StrictEngine } from './strict-engine.js'
import { strictScript } from './strict-script.js'
import { WatchRunner } from './watch-runner.js'
import { WatchSession } from './watch-session.js'

/** Makes stores of one server each, or of one Cluster. */
export function storeOpener(
  owner: object,
  plan: RedisPlan,
  names: KeyNames,
): (client: unknown, rules: readonly RemoteRule[]) => OpenedShard & { readonly channel: Channel } {
  const { testTime, deadlineMs, ownConnection, otherKeysExpire, isReplicated, maxKeys } = plan
  const time = () => testTime?.() ?? 0
  return (client, rules) => {
    const connect = () => connectLike(client, ownConnection)
    const writingBy = (connection: RedisConnection) =>
      isReplicated ? replicated(connection, deadlineMs) : connection
    const kind = kindOf(rules[0]!.rule)
    const channel = new Channel(
      writingBy(connect()),
      scriptOf(kind === 'packed' ? strictScript(rules, testTime !== undefined) : SCRIPTS[kind]),
      deadlineMs,
      { otherKeysExpire },
      rightsProbe(names.unused, kind, plan.isOptimistic),
    )
    return { client, store: storeOf(), channel, isDown: () => channel.isInterrupted }

    function storeOf(): RemoteStore {
      const counting = { owner, rules, names, time, maxKeys }
      switch (kind) {
        case 'packed':
          return new StrictEngine(owner, channel, rules, names, testTime, maxKeys)
        case 'sliding-counter':
          return new CountingStore({ ...counting, clear: clearNames }, new ScriptRunner(channel))
        case 'sliding-log': {
          if (!plan.isOptimistic)
            return new CountingStore({ ...counting, clear: clearLogs }, new ScriptRunner(channel))
          if (channel.connection.isCluster) refuseCluster(channel)
          const open = () => {
            const connection = connect()
            return new WatchSession(connection, writingBy(connection))
          }
          const runner = new WatchRunner(channel, open, deadlineMs)
          return new CountingStore({ ...counting, clear: clearWatched(runner, rules, time) }, runner)
        }
      }
    }
  }
}

const SCRIPTS = { 'sliding-counter': COUNTER_SCRIPT, 'sliding-log': LOG_SCRIPT } as const

const clearLogs: ClearNames = (send, pattern, longestMs) =>
  clearNames(send, pattern, longestMs, CLEAR_LOG_SCRIPT)

function refuseCluster(channel: Channel): never {
  void channel.close()
  const expected = 'false for a Cluster'
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'optimistic', true, expected)
}
