import { Channel } from './channel.js'
import { connectLike, replicated } from './connection.js'
import { KeyNames } from './key-names.js'
import type { RedisPlan } from './redis-options.js'
import { RemoteLimiter } from './remote-limiter.js'
import { StrictEngine } from './strict-engine.js'
import { strictScript } from './strict-script.js'

/** A limiter whose counts are on Redis. */
export class RedisLimiter extends RemoteLimiter {
  /** @internal */
  constructor(plan: RedisPlan) {
    const { client, prefix, rules, testTime, deadlineMs, ownConnection, isReplicated, maxKeys } = plan
    const ruleNames = rules.map(({ rule }) => rule.name)
    super('RedisLimiter', plan, (owner) => {
      const connection = connectLike(client, ownConnection)
      const own = isReplicated ? replicated(connection, deadlineMs) : connection
      const channel = new Channel(own, strictScript(rules, testTime !== undefined), deadlineMs)
      return new StrictEngine(owner, channel, rules, new KeyNames(prefix, ruleNames), testTime, maxKeys)
    })
  }
}
