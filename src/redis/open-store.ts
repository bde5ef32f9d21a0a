import { MillraceError } from '../core/errors.js'
import type { KeyNames } from '../remote/key-names.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { RemoteStore } from '../remote/remote-store.js'
import { Channel } from './channel.js'
import { connectLike, replicated } from './clients/connect.js'
import type { RedisConnection } from './clients/connection.js'
import { clearNames } from './counting/clear-names.js'
import { clearWatched } from './counting/clear-watched.js'
import { COUNTER_SCRIPT } from './counting/counter-script.js'
import { type ClearNames, CountingStore } from './counting/counting-store.js'
import { CLEAR_LOG_SCRIPT, LOG_SCRIPT } from './counting/log-script.js'
import { ScriptRunner } from './counting/script-runner.js'
import { WatchRunner } from './counting/watch-runner.js'
import { WatchSession } from './counting/watch-session.js'
import { kindOf } from './counting-rule.js'
import { StrictEngine } from './packed/strict-engine.js'
import { strictScript } from './packed/strict-script.js'
import type { RedisPlan } from './redis-options.js'
import { rightsProbe } from './rights-probe.js'
import { scriptOf } from './script.js'
import type { OpenedShard } from './shards/shard.js'

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
