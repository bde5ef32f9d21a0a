#!/usr/bin/env node
// Explores every interleaving of a ring's client and servers (src/engines/pool/ring-transport.ts, ring-client.ts,
// pool.ts): sleeping, waking, ending when idle, starting again, dying anywhere, and cancelling a start. One
// step is one operation on shared memory; a wait compares and goes to sleep in one step. A sleeping server
// may time out at any moment. In the scenarios without timeouts none ever does, which shows that no request
// depends on a timeout.
//
//   node test/model/ring-transport.mjs             as designed: holds
//   node test/model/ring-transport.mjs --broken    with one rule left out: each must fail
import { fileURLToPath } from 'node:url'

const [ENDED, AWAKE, ASLEEP, STARTING] = [0, 1, 2, 3]

export const mistakes = {
  'a server that ends without a last read of REQUESTED': 'two turns',
  'a server that resumes after its end without a compare-exchange': 'two turns',
  'a server that sleeps without comparing': 'no timeouts',
  'a server that sleeps before it sets ASLEEP': 'no timeouts',
  'a server that reads WAITING before it stores REPLIED': 'two turns',
  'a server that clears WAITING': 'two turns',
  'a client that waits without comparing': 'two turns',
  'a client that waits before it sets WAITING': 'two turns',
  'a STATE without the generation': 'two deaths',
  'a client that handles the death of an older generation': 'two deaths',
  'a server that decides before it stores ACCEPTED': 'a death',
  'a client that ignores finished replies': 'a death',
  'a client that reads STATE before it stores REQUESTED': 'two turns',
  'a client that cancels a server that has begun': 'cancelled start',
  'a server that begins without a compare-exchange': 'cancelled start',
}

/**
 * The requests of each turn of the client. A turn with many requests publishes them in parts, and waits for
 * replies at its end.
 */
export const scenarios = {
  'two turns': { turns: [1, 1], deaths: 0 },
  'no timeouts': { turns: [1, 1, 1], deaths: 0, hasNoTimeouts: true },
  'three turns': { turns: [1, 2, 1], deaths: 0 },
  'a turn in parts': {
    turns: [
      [1, 1],
      [2, 1],
    ],
    deaths: 0,
  },
  'a turn in parts, no timeouts': { turns: [[1, 1], 1], deaths: 0, hasNoTimeouts: true },
  'a death': { turns: [2, 1], deaths: 1 },
  'a death in a turn of parts': { turns: [[1, 1], 1], deaths: 1 },
  'two deaths': { turns: [1, 1, 1], deaths: 2 },
  'cancelled start': { turns: [1, 1], deaths: 0, cancels: 1 },
  'cancelled start, and a death': { turns: [1, 1, 1], deaths: 1, cancels: 1 },
}

/** Explores a scenario. Returns the number of its states, and what is wrong in one of them. */
export function explore({ turns, deaths, cancels = 0, hasNoTimeouts = false }, mistake = '') {
  const parts = turns.map((turn) => [turn].flat())
  const first = {
    requested: 0,
    replied: 0,
    accepted: 0,
    completed: 0,
    state: ENDED,
    waiting: 0,
    // The client: its next step, its cursors, and its pending wait.
    at: 'idle',
    turn: 0,
    part: 0,
    next: 0,
    read: 0,
    isReceiving: false,
    isWaitResolved: false,
    isWaiting: false,
    generation: 0,
    lastState: 0,
    deaths,
    cancels,
    ended: [], // generations whose workers have died, before the client handles it
    isHopeless: false, // no server will run: the client rejects all requests
    threads: [],
    times: parts.flat().flatMap((n) => Array(n).fill(0)), // how often each request was decided
    lost: [],
  }
  const stack = [first]
  const seen = new Set([JSON.stringify(first)])
  let ends = 0
  while (stack.length > 0) {
    const now = stack.pop()
    const wrong = wrongIn(now)
    if (wrong) return { states: seen.size, ends, wrong }
    let moves = 0
    for (const next of movesOf(now, parts, hasNoTimeouts, mistake)) {
      moves++
      const key = JSON.stringify(next)
      if (seen.has(key)) continue
      seen.add(key)
      stack.push(next)
    }
    if (moves > 0) continue
    ends++
    if (now.read !== now.times.length)
      return { states: seen.size, ends, wrong: `${now.read} requests settled, and no further step` }
  }
  return { states: seen.size, ends }
}

function wrongIn({ times, lost, threads, read, replied }) {
  if (times.some((n) => n > 1)) return 'a request decided twice'
  if (threads.filter(({ at }) => at !== 'returned').length > 1 && threads.filter(isAtWork).length > 1)
    return 'two servers of one ring'
  for (let i = 0; i < read; i++)
    if (times[i] === 0 && !lost.includes(i)) return 'a reply that no server decided'
  if (replied < read) return 'the client read beyond REPLIED'
}
const isAtWork = ({ at }) => ['begin', 'decide', 'complete', 'reply'].includes(at)

const kindOf = (state) => state % 4

function* movesOf(s, parts, hasNoTimeouts, mistake) {
  const is = (name) => mistake === name
  const copy = () => ({
    ...s,
    times: s.times.slice(),
    lost: s.lost.slice(),
    ended: s.ended.slice(),
    threads: s.threads.map((t) => ({ ...t })),
  })
  const stateOf = (generation, kind) => (is('a STATE without the generation') ? kind : 4 * generation + kind)
  const client = (change) => {
    const q = copy()
    change(q)
    return q
  }
  const start = (q) => {
    q.generation++
    q.state = stateOf(q.generation, STARTING)
    q.threads.push({ generation: q.generation, at: 'start', handled: 0 })
  }
  const readsStateFirst = is('a client that reads STATE before it stores REQUESTED')
  const enqueue = (q) => {
    q.next += parts[q.turn][q.part]
    q.part = (q.part + 1) % parts[q.turn].length
    if (q.part === 0) q.turn++
    q.at = readsStateFirst ? 'state' : 'publish'
  }
  if (s.at === 'idle') {
    if (s.turn < parts.length) yield client(enqueue)
    if (s.isWaitResolved)
      yield client((q) =>
        Object.assign(q, {
          isWaitResolved: false,
          isReceiving: false,
          waiting: 0,
          read: q.replied,
          at: 'receive',
        }),
      )
    if (s.ended.length > 0) yield client(failInFlight)
    const mayCancel = s.cancels > 0 && s.generation > 0 && kindOf(s.state) !== ENDED
    if (mayCancel && (kindOf(s.state) === STARTING || is('a client that cancels a server that has begun')))
      yield client((q) => {
        q.cancels--
        q.state = stateOf(q.generation, ENDED)
        q.ended.push(q.generation)
        q.isHopeless = true
      })
  }
  if (s.at === 'publish')
    yield client((q) => Object.assign(q, { requested: q.next, at: readsStateFirst ? 'wake' : 'state' }))
  if (s.at === 'state')
    yield client((q) => Object.assign(q, { lastState: q.state, at: readsStateFirst ? 'publish' : 'wake' }))
  if (s.at === 'wake')
    yield client((q) => {
      if (kindOf(q.lastState) === ASLEEP) for (const t of q.threads) if (t.at === 'asleep') t.at = 'woken'
      if (kindOf(q.lastState) === ENDED && q.state === q.lastState) start(q)
      if (q.part > 0) enqueue(q)
      else q.at = 'receive'
    })
  if (s.at === 'receive')
    yield client((q) => {
      q.at = q.isReceiving || q.next === q.read ? 'idle' : 'wait'
      if (q.at === 'wait' && !is('a client that waits before it sets WAITING')) q.waiting = 1
    })
  if (s.at === 'wait')
    yield client((q) => {
      const isChanged = q.replied !== q.read && !is('a client that waits without comparing')
      Object.assign(q, { isReceiving: true, isWaitResolved: isChanged, isWaiting: !isChanged, at: 'idle' })
      if (is('a client that waits before it sets WAITING')) q.at = 'set late'
    })
  if (s.at === 'set late') yield client((q) => Object.assign(q, { waiting: 1, at: 'idle' }))

  /** A worker has died: the client rejects its request in flight, and the next server begins behind it. */
  function failInFlight(q) {
    const generation = q.ended.shift()
    if (generation !== q.generation && !is('a client that handles the death of an older generation')) return
    if (!is('a client that ignores finished replies')) q.replied = q.completed
    q.read = q.replied
    if (q.accepted !== q.read) {
      q.lost.push(q.read)
      q.replied = q.accepted
      q.completed = q.accepted
      q.read = q.accepted
    }
    if (q.isHopeless) {
      // The client rejects all requests.
      for (; q.read < q.next; q.read++) q.lost.push(q.read)
      for (const cursor of ['requested', 'accepted', 'completed', 'replied']) q[cursor] = q.next
      q.isHopeless = false
    }
    q.state = stateOf(q.generation, ENDED)
    if (q.next !== q.read) q.at = 'publish'
  }

  for (const [i, t] of s.threads.entries()) {
    if (t.at === 'returned') continue
    const thread = (change) => {
      const q = copy()
      change(q.threads[i], q)
      if (q.threads[i].at === 'returned') q.threads.splice(i, 1)
      return q
    }
    if (s.deaths > 0)
      yield thread((t, q) => {
        q.deaths--
        q.ended.push(t.generation)
        t.at = 'returned'
      })
    const to = (at) => thread((t) => (t.at = at))
    const begin = (upTo) => thread((t) => Object.assign(t, { at: 'begin', upTo }))
    const readsWaitingFirst = is('a server that reads WAITING before it stores REPLIED')
    if (t.at === 'start')
      yield thread((t, q) => {
        const mayBegin =
          q.state === stateOf(t.generation, STARTING) || is('a server that begins without a compare-exchange')
        if (mayBegin) q.state = stateOf(t.generation, AWAKE)
        Object.assign(t, { at: mayBegin ? 'poll' : 'returned', handled: q.replied })
      })
    if (t.at === 'poll') yield s.requested === t.handled ? to('set asleep') : begin(s.requested)
    if (t.at === 'begin')
      yield thread((t, q) => {
        if (is('a server that decides before it stores ACCEPTED')) q.times[t.handled]++
        else q.accepted = t.handled + 1
        t.at = 'decide'
      })
    if (t.at === 'decide')
      yield thread((t, q) => {
        if (is('a server that decides before it stores ACCEPTED')) q.accepted = t.handled + 1
        else q.times[t.handled]++
        t.at = 'complete'
      })
    if (t.at === 'complete')
      yield thread((t, q) => {
        q.completed = ++t.handled
        t.at = t.handled < t.upTo ? 'begin' : readsWaitingFirst ? 'read waiting' : 'reply' // published all at once
      })
    if (t.at === 'reply')
      yield thread((t, q) => {
        q.replied = t.handled
        t.at = readsWaitingFirst ? (t.seesWaiting ? 'notify' : 'poll') : 'read waiting'
      })
    if (t.at === 'read waiting')
      yield thread((t, q) => {
        t.seesWaiting = q.waiting === 1
        t.at = readsWaitingFirst ? 'reply' : t.seesWaiting ? 'notify' : 'poll'
      })
    if (t.at === 'notify')
      yield thread((t, q) => {
        if (is('a server that clears WAITING')) q.waiting = 0
        t.at = 'notified'
      })
    if (t.at === 'notified')
      yield thread((t, q) => {
        if (q.isWaiting) Object.assign(q, { isWaiting: false, isWaitResolved: true })
        t.at = 'poll'
      })
    if (t.at === 'set asleep')
      yield thread((t, q) => {
        if (!is('a server that sleeps before it sets ASLEEP')) q.state = stateOf(t.generation, ASLEEP)
        t.at = 'sleep'
      })
    if (t.at === 'sleep')
      yield thread((t, q) => {
        const isChanged = q.requested !== t.handled && !is('a server that sleeps without comparing')
        t.at = isChanged ? 'woken' : is('a server that sleeps before it sets ASLEEP') ? 'set late' : 'asleep'
      })
    if (t.at === 'set late')
      yield thread((t, q) => Object.assign(t, { at: 'asleep' }) && (q.state = stateOf(t.generation, ASLEEP)))
    if (t.at === 'asleep' && !hasNoTimeouts) yield to('end')
    if (t.at === 'woken')
      yield thread((t, q) => Object.assign(t, { at: 'poll' }) && (q.state = stateOf(t.generation, AWAKE)))
    if (t.at === 'end')
      yield thread((t, q) => {
        q.state = stateOf(t.generation, ENDED)
        t.at = is('a server that ends without a last read of REQUESTED') ? 'returned' : 'last read'
      })
    if (t.at === 'last read') yield to(s.requested === t.handled ? 'returned' : 'resume')
    if (t.at === 'resume')
      yield thread((t, q) => {
        const mayResume =
          q.state === stateOf(t.generation, ENDED) ||
          is('a server that resumes after its end without a compare-exchange')
        if (mayResume) q.state = stateOf(t.generation, AWAKE)
        t.at = mayResume ? 'poll' : 'returned'
      })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let ok = true
  const isBroken = process.argv[2] === '--broken'
  const runs = isBroken
    ? Object.entries(mistakes).map(([m, s]) => [s, m])
    : Object.keys(scenarios).map((s) => [s, ''])
  for (const [name, mistake] of runs) {
    const { states, ends, wrong } = explore(scenarios[name], mistake)
    console.log(
      `${name}${mistake && ` [${mistake}]`}: ${wrong ? `FAILS: ${wrong}` : 'holds'}, ${states} states, ${ends} ends`,
    )
    ok &&= (wrong !== undefined) === isBroken
  }
  process.exitCode = ok ? 0 : 1
}
