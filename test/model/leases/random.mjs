// Random runs of the model of leases.
import { randomBy, run } from './simulation.mjs'

const pick = (random, from) => from[Math.floor(random() * from.length)]

/** A random fleet, network and load of this number. @param makeServer another server than that of the model */
export function randomRun(seed, mistake, makeServer) {
  const random = randomBy(seed)
  const windowMs = 6000
  const rules = [
    { limit: pick(random, [1, 3, 10, 30, 100]), windowMs, parts: pick(random, [1, 2, 6, 60, 300]) },
  ]
  for (let more = pick(random, [0, 0, 1, 2]); more > 0; more--) {
    const limit = Math.ceil(rules[0].limit * (0.5 + random()))
    rules.push({ limit, windowMs: pick(random, [1000, 3000, 6000]), parts: pick(random, [1, 7, 60, 300]) })
  }
  const drift = 0.0009
  const nodes = 1 + Math.floor(random() * 6)
  const clocks = Array.from({ length: nodes }, () => ({
    ...{ offsetMs: random() * 1e7, drift: (random() * 2 - 1) * drift },
  }))
  const slowest = pick(random, [1, 20, 300, 2000])
  const lost = pick(random, [0, 0.1, 0.4])
  const doubles = pick(random, [0, 0.2])
  const network = () => {
    const there = random() < lost ? undefined : random() * slowest
    const doubled = random() < doubles ? random() * slowest * 3 : undefined
    return { there, back: random() < lost ? undefined : random() * slowest, doubled }
  }
  const leaseMs = windowMs * pick(random, [0.02, 0.1, 0.4, 1.5])
  const settings = {
    ...{ rules, leaseMs, mistake, margin: 0.002 },
    deadlineMs: pick(random, [50, 500, 3000]),
  }
  const untilMs = windowMs * 6
  const plan = planOf(random, settings, nodes, untilMs)
  return run({ settings, clocks, network, plan, untilMs }, makeServer)
}

function planOf(random, { rules, leaseMs }, nodes, untilMs) {
  const [{ limit, windowMs }] = rules
  const most = Math.min(...rules.map((rule) => rule.limit))
  const costs = pick(random, [[1], [1], [1, 2, 5], [1, 20]]).map((cost) => Math.min(cost, most))
  const load = pick(random, [0.5, 1, 2, 6]) * limit
  const shares = Array.from({ length: nodes }, () => random() + 0.02)
  const all = shares.reduce((a, b) => a + b)
  const burstMs = pick(random, [0, 0.1, 0.5, 2]) * windowMs
  const plan = []
  for (const [node, share] of shares.entries()) {
    const meanMs = windowMs / ((load * share) / all)
    let isLoud = true
    let turnsAt = burstMs * random()
    for (let at = meanMs * random(); at < untilMs; at += -Math.log(1 - random()) * meanMs) {
      for (; burstMs > 0 && at > turnsAt; turnsAt += burstMs * (0.1 + random())) isLoud = !isLoud
      if (isLoud || burstMs === 0)
        plan.push({ at, do: 'ask', node, cost: pick(random, costs), times: isLoud ? 2 : 1 })
    }
    for (let at = leaseMs * random(); at < untilMs; at += Math.max(300, leaseMs) * (0.2 + 0.2 * random()))
      plan.push({ at, do: 'rest', node })
  }
  const somewhere = () => ({ at: random() * untilMs, node: Math.floor(random() * nodes) })
  for (let deaths = pick(random, [0, 1, 4]); deaths > 0; deaths--) {
    const death = somewhere()
    plan.push({ ...death, do: 'die' }, { ...death, at: death.at + (random() * windowMs) / 4, do: 'start' })
  }
  for (let sleeps = pick(random, [0, 0, 3]); sleeps > 0; sleeps--)
    plan.push({ ...somewhere(), do: 'sleep', ms: random() * leaseMs * 3 })
  for (let strict = pick(random, [0, 0, 20]); strict > 0; strict--)
    plan.push({ at: random() * untilMs, do: 'strict', cost: pick(random, costs) })
  const loss = pick(random, ['', '', '', 'lose', 'failOver'])
  if (loss !== '') {
    const at = windowMs * 2 + random() * windowMs * 3
    plan.push({ at: at - random() * 500, do: 'copy' }, { at, do: loss })
  }
  return plan
}
