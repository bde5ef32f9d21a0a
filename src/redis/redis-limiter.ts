import { MillraceError } from '../core/errors.js'
import { Channel } from './channel.js'
import { clearNames } from './clear-names.js'
import { clearWatched } from './clear-watched.js'
import { connectLike, type RedisConnection, replicated } from './connection.js'
import { COUNTER_SCRIPT } from './counter-script.js'
import { kindOf } from './counting-rule.js'
import { type ClearNames, CountingStore } from './counting-store.js'
import { KeyNames } from './key-names.js'
import { CLEAR_LOG_SCRIPT, LOG_SCRIPT } from './log-script.js'
import type { RedisPlan } from './redis-options.js'
import { RemoteLimiter } from './remote-limiter.js'
import type { RemoteStore } from './remote-store.js'
import { ScriptRunner } from './script-runner.js'
import { StrictEngine } from './strict-engine.js'
import { strictScript } from './strict-script.js'
import { WatchRunner } from './watch-runner.js'
import { WatchSession } from './watch-session.js'

/** A limiter whose counts are on Redis. */
export class RedisLimiter extends RemoteLimiter {
  /** @internal */
  constructor(plan: RedisPlan) {
    super('RedisLimiter', plan, (owner) => storeOf(owner, plan))
  }
}

/** The store of the rules' algorithm. */
function storeOf(owner: object, plan: RedisPlan): RemoteStore {
  const { client, prefix, rules, testTime, deadlineMs, ownConnection, isReplicated, maxKeys } = plan
  const names = new KeyNames(
    prefix,
    rules.map(({ rule }) => rule.name),
  )
  const isTest = testTime !== undefined
  const time = () => testTime?.() ?? 0
  const connect = () => connectLike(client, ownConnection)
  const writingBy = (connection: RedisConnection) =>
    isReplicated ? replicated(connection, deadlineMs) : connection
  const channelOf = (source: string) => new Channel(writingBy(connect()), source, deadlineMs)
  switch (kindOf(rules[0]!.rule)) {
    case 'packed':
      return new StrictEngine(owner, channelOf(strictScript(rules, isTest)), rules, names, testTime, maxKeys)
    case 'sliding-counter': {
      const counting = { owner, rules, names, time, maxKeys, clear: clearNames }
      return new CountingStore(counting, new ScriptRunner(channelOf(COUNTER_SCRIPT)))
    }
    case 'sliding-log': {
      const channel = channelOf(LOG_SCRIPT)
      if (plan.isOptimistic && channel.connection.isCluster) refuseCluster(channel)
      const open = () => {
        const connection = connect()
        return new WatchSession(connection, writingBy(connection))
      }
      const runner = plan.isOptimistic
        ? new WatchRunner(channel, open, deadlineMs)
        : new ScriptRunner(channel)
      const clear = plan.isOptimistic ? clearWatched(runner, rules, time) : clearLogs
      return new CountingStore({ owner, rules, names, time, maxKeys, clear }, runner)
    }
  }
}

const clearLogs: ClearNames = (send, pattern, longestMs) =>
  clearNames(send, pattern, longestMs, CLEAR_LOG_SCRIPT)

function refuseCluster(channel: Channel): never {
  void channel.close()
  const expected = 'false for a Cluster'
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'optimistic', true, expected)
}
