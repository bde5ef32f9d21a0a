// run: once, also-full
// What a group counts, and what each of its members counts of the group's decisions.

import type { GroupStats, LimiterStats } from 'millrace'
import * as assert from 'uvu/assert'
import { random } from '../algorithms/random.js'
import { conformGroups, logins } from './groups.js'

const SHARES = { account: 0.6, address: 0.3 }
const NAMES = ['account', 'address'] as const

const none = () => ({ admitted: 0, refused: 0, shadowRefused: 0, blocked: 0, nearLimit: 0 })

conformGroups({
  'counts decisions as a limiter does, and near the limit by the shares of its members': async (subject) => {
    const of = (name: 'account' | 'address') => ({ nearLimit: SHARES[name] })
    const { both, byAccount, byAddress, clock } = logins(subject, of('account'), of('address'))
    const limiters = { account: byAccount, address: byAddress }
    const all = none()
    const members = { account: none(), address: none() }
    const blocked = { account: new Set<string>(), address: new Set<string>() }
    const draw = random(13)
    for (let i = 0; i < 200; i++) {
      const keys = { account: `a${Math.floor(draw() * 3)}`, address: `b${Math.floor(draw() * 2)}` }
      const name = NAMES[Math.floor(draw() * 2)]!
      const act = draw()
      if (act < 0.03) {
        await limiters[name].block(keys[name], Number.POSITIVE_INFINITY)
        blocked[name].add(keys[name])
      } else if (act < 0.09) {
        await limiters[name].unblock(keys[name])
        blocked[name].delete(keys[name])
      } else {
        const cost = Math.floor(draw() ** 3 * 7)
        const decision = await both.check(keys, cost)
        const { allowed, member } = decision
        if (allowed) {
          let isNear = false
          for (const each of NAMES) {
            const { limit, remaining } = decision.members[each]
            const isOwn = cost > 0 && (limit - remaining) / limit >= SHARES[each]
            members[each].admitted++
            if (isOwn) members[each].nearLimit++
            isNear ||= isOwn
          }
          all.admitted++
          if (isNear) all.nearLimit++
        } else {
          const isBlocked = blocked[member].has(keys[member])
          for (const counts of [all, members[member]]) {
            counts.refused++
            if (isBlocked) counts.blocked++
          }
        }
      }
      clock.advance(Math.floor(draw() ** 3 * 60_000))
    }
    const { own } = (await both.stats()) as GroupStats
    assert.equal(own, { ...all, members })
    assert.ok(all.nearLimit > 0 && all.blocked > 0 && all.refused > all.blocked)
    for (const each of NAMES) {
      const stats = (await limiters[each].stats()) as LimiterStats
      const { rules, ...ownOfMember } = stats.own
      assert.equal(ownOfMember, members[each], each)
      assert.equal(Object.values(rules), [members[each]], each)
    }
  },
})
