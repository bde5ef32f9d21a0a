import type { TogetherDecider, TogetherDecision } from '../../groups/joining.js'
import { RemoteLimiter } from '../../remote/remote-limiter.js'
import { GroupEngine, joinedKey } from './group-engine.js'
import { type RedisMember, rulesOf } from './redis-group-member.js'

/**
 * Decides for limiters on Redis by one call of a script with a rule for each place of the list. A limiter may have
 * several places: the keys of a call differ.
 */
export class RedisTogether implements TogetherDecider {
  readonly #joined: RemoteLimiter

  /** @param members of one client, each with one rule */
  constructor(members: readonly RedisMember[]) {
    const [{ plan }] = members as [RedisMember]
    const own = { ...plan, rules: members.flatMap(rulesOf), rememberRefusals: false }
    this.#joined = new RemoteLimiter('RedisTogether', own, (owner) => ({
      store: new GroupEngine(owner, members),
    }))
  }

  async decide(
    keys: readonly string[],
    costs: readonly number[],
    limits: readonly number[],
  ): Promise<TogetherDecision> {
    const { allowed, source, parts } = await this.#joined.decideEach(joinedKey(keys), costs, limits)
    return { allowed, source, parts }
  }
}
