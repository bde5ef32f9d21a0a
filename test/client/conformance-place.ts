// The place `service` of the conformance suite: an engine of the decision service in this process, asked over HTTP. The
// limiters of the engine count in memory.
import {
  type AsyncLimiter,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type RuleOptions,
} from 'millrace'
import { createClient } from 'millrace/client'
import { serve } from 'millrace-service'
import { RULE_OPTIONS } from '#millrace/core/rule-options.js'
import type { Maker } from '../conformance/places.js'
import { remoteMaker } from '../redis/conformance-place.js'
import { QUIET, TOKEN } from './support.js'

/** The options that a place on a server gives to a limiter. */
interface RemoteOptions {
  readonly prefix: string
  readonly deadline: '1m'
  readonly testTime: () => number
  readonly rules?: readonly RuleOptions[]
}

export async function serviceMaker(): Promise<Maker> {
  const limiters = new Map<string, Limiter>()
  const { url, close } = await serve({ port: 0, ...QUIET }, { limiters })
  const maker = remoteMaker((options): AsyncLimiter => {
    const { prefix, deadline, testTime, nearLimit, rememberRefusals, ...own } = options as RemoteOptions & {
      nearLimit?: number
      rememberRefusals?: boolean
    }
    if (!limiters.has(prefix)) {
      const clock = { now: testTime }
      limiters.set(prefix, createLimiter({ ...(own as unknown as LimiterOptions), clock }) as Limiter)
    }
    const { maxKeys, ...rest } = own as { maxKeys?: number } & RuleOptions
    const ofRule = Object.fromEntries(Object.entries(rest).filter(([name]) => RULE_OPTIONS.includes(name)))
    const rules = own.rules ?? [ofRule as unknown as RuleOptions]
    const kept = Object.entries({ rememberRefusals, nearLimit }).filter(([, value]) => value !== undefined)
    const ofClient = { rules, deadline, testTime, ...Object.fromEntries(kept) }
    return createClient({ url, token: TOKEN, limiter: prefix, ...ofClient })
  })
  return {
    ...maker,
    async close() {
      await maker.close()
      await close()
      for (const limiter of limiters.values()) await limiter.close()
    },
  }
}
