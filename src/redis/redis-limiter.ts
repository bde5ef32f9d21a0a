import { Channel } from './channel.js'
import { clearNames } from './clear-names.js'
import { connectLike, replicated } from './connection.js'
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
import { STRICT_SCRIPT } from './strict-script.js'

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
  const time = () => testTime?.() ?? 0
  const channelOf = (source: string) => {
    const connection = connectLike(client, ownConnection)
    return new Channel(isReplicated ? replicated(connection, deadlineMs) : connection, source, deadlineMs)
  }
  switch (kindOf(rules[0]!.rule)) {
    case 'packed':
      return new StrictEngine(owner, channelOf(STRICT_SCRIPT), rules, names, time, maxKeys)
    case 'sliding-counter': {
      const counting = { owner, rules, names, time, maxKeys, clear: clearNames }
      return new CountingStore(counting, new ScriptRunner(channelOf(COUNTER_SCRIPT)))
    }
    case 'sliding-log': {
      const counting = { owner, rules, names, time, maxKeys, clear: clearLogs }
      return new CountingStore(counting, new ScriptRunner(channelOf(LOG_SCRIPT)))
    }
  }
}

const clearLogs: ClearNames = (send, pattern, longestMs) =>
  clearNames(send, pattern, longestMs, CLEAR_LOG_SCRIPT)
