import type { AsyncLimiterGroup } from '../async-limiter-group.js'
import { JOIN, type Joining } from '../joining.js'
import { Channel } from './channel.js'
import { connectLike, replicated } from './connection.js'
import { KeyNames } from './key-names.js'
import { RedisGroup } from './redis-group.js'
import { groupMember, type RedisParts } from './redis-group-member.js'
import type { RedisPlan } from './redis-options.js'
import { RemoteLimiter } from './remote-limiter.js'
import { StrictEngine } from './strict-engine.js'
import { STRICT_SCRIPT } from './strict-script.js'

/** A limiter whose counts are on Redis. */
export class RedisLimiter extends RemoteLimiter implements Joining {
  readonly #parts: RedisParts

  /** @internal */
  constructor(plan: RedisPlan) {
    const { client, prefix, rules, testTime, deadlineMs, ownConnection, isReplicated, maxKeys } = plan
    const names = new KeyNames(
      prefix,
      rules.map(({ rule }) => rule.name),
    )
    let parts: Pick<RedisParts, 'channel' | 'engine'> | undefined
    super('RedisLimiter', plan, (owner) => {
      const connection = connectLike(client, ownConnection)
      const own = isReplicated ? replicated(connection, deadlineMs) : connection
      const channel = new Channel(own, STRICT_SCRIPT, deadlineMs)
      const engine = new StrictEngine(owner, channel, rules, names, () => testTime?.() ?? 0, maxKeys)
      parts = { channel, engine }
      return engine
    })
    this.#parts = { plan, names, ...parts!, onClose: new Set() }
  }

  override close(): Promise<void> {
    for (const end of this.#parts.onClose) end()
    return super.close()
  }

  /** @internal */
  [JOIN](members: readonly (readonly [name: string, limiter: Joining])[]): AsyncLimiterGroup {
    return new RedisGroup(
      members.map(([name, limiter]) => {
        const redis = limiter as RedisLimiter
        return groupMember(name, redis, redis.#parts)
      }),
    )
  }
}
