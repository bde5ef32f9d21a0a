#!/usr/bin/env node
// The ring between the thread that asks and one that answers (src/engines/ring-transport.ts, ring-client.ts, pool.ts), at every
// interleaving: sleeping, waking, ending when idle, starting again, dying anywhere, being given up before it has come. One step is one operation on shared
// memory; waiting compares and goes to sleep in one. A thread that sleeps may time out at any moment; that nobody has to wait
// until one does is seen where none ever does.
//
//   node test/model/ring-transport.mjs             as designed: holds
//   node test/model/ring-transport.mjs --broken    with one rule left out: each must fail
import { fileURLToPath } from 'node:url'

const [ENDED, AWAKE, ASLEEP, STARTING] = [0, 1, 2, 3]

export const mistakes = {
  'no look at what was asked after the end was said': 'two turns',
  'goes on after the end without asking whether it may': 'two turns',
  'sleeps without comparing': 'nobody times out',
  'does not say that it sleeps before it does': 'nobody times out',
  'looks who waits before it has said what is answered': 'two turns',
  'says itself that nobody waits': 'two turns',
  'waits for answers without comparing': 'two turns',
  'does not say that it waits before it does': 'two turns',
  'an end that does not say whose': 'two deaths',
  'buries whom it is told of, whoever answers now': 'two deaths',
  'begins before it says so': 'a death',
  'forgets what was done and not shown': 'a death',
  'asks after it has looked who sleeps': 'two turns',
  'gives up a thread that has begun': 'given up',
  'begins without asking whether it was given up': 'given up',
}

/** What is asked in each turn of the asker's; a turn that asks for much shows it in parts, and listens at its end. */
export const scenarios = {
  'two turns': { turns: [1, 1], deaths: 0 },
  'nobody times out': { turns: [1, 1, 1], deaths: 0, isPatient: true },
  'three turns': { turns: [1, 2, 1], deaths: 0 },
  'a turn in parts': {
    turns: [
      [1, 1],
      [2, 1],
    ],
    deaths: 0,
  },
  'a turn in parts, nobody times out': { turns: [[1, 1], 1], deaths: 0, isPatient: true },
  'a death': { turns: [2, 1], deaths: 1 },
  'a death in a turn of parts': { turns: [[1, 1], 1], deaths: 1 },
  'two deaths': { turns: [1, 1, 1], deaths: 2 },
  'given up': { turns: [1, 1], deaths: 0, givenUp: 1 },
  'given up, and a death': { turns: [1, 1, 1], deaths: 1, givenUp: 1 },
}

/** Explores a scenario: how many states it has, and what is wrong in one of them. */
export function explore({ turns, deaths, givenUp = 0, isPatient = false }, mistake = '') {
  const parts = turns.map((turn) => [turn].flat())
  const first = {
    asked: 0,
    answered: 0,
    begun: 0,
    done: 0,
    state: ENDED,
    waiting: 0,
    // The asker: where it is, how far it has asked and read, and what it is told.
    at: 'idle',
    turn: 0,
    part: 0,
    next: 0,
    read: 0,
    isListening: false,
    canTrustEpoch: false,
    isWaiter: false,
    starts: 0,
    seen: 0,
    deaths,
    givenUp,
    ended: [], // starts whose threads have died, for the asker to hear of
    isNone: false, // and of none that will come
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
    for (const next of movesOf(now, parts, isPatient, mistake)) {
      moves++
      const key = JSON.stringify(next)
      if (seen.has(key)) continue
      seen.add(key)
      stack.push(next)
    }
    if (moves > 0) continue
    ends++
    if (now.read !== now.times.length)
      return { states: seen.size, ends, wrong: `${now.read} requests settled for ever` }
  }
  return { states: seen.size, ends }
}

function wrongIn({ times, lost, threads, read, answered }) {
  if (times.some((n) => n > 1)) return 'a request decided twice'
  if (threads.filter(({ at }) => at !== 'returned').length > 1 && threads.filter(isAtWork).length > 1)
    return 'two threads answer one ring'
  for (let i = 0; i < read; i++)
    if (times[i] === 0 && !lost.includes(i)) return 'an answer to what nobody decided'
  if (answered < read) return 'read ahead of what is answered'
}
const isAtWork = ({ at }) => ['begin', 'decide', 'done', 'answered'].includes(at)

const kindOf = (state) => state % 4

function* movesOf(s, parts, isPatient, mistake) {
  const is = (name) => mistake === name
  const copy = () => ({
    ...s,
    times: s.times.slice(),
    lost: s.lost.slice(),
    ended: s.ended.slice(),
    threads: s.threads.map((t) => ({ ...t })),
  })
  const stateOf = (start, kind) => (is('an end that does not say whose') ? kind : 4 * start + kind)
  const asker = (change) => {
    const q = copy()
    change(q)
    return q
  }
  const start = (q) => {
    q.starts++
    q.state = stateOf(q.starts, STARTING)
    q.threads.push({ start: q.starts, at: 'start', answered: 0, woken: false })
  }
  const isSentBefore = is('asks after it has looked who sleeps')
  const put = (q) => {
    q.next += parts[q.turn][q.part]
    q.part = (q.part + 1) % parts[q.turn].length
    if (q.part === 0) q.turn++
    q.at = isSentBefore ? 'state' : 'send'
  }
  if (s.at === 'idle') {
    if (s.turn < parts.length) yield asker(put)
    if (s.canTrustEpoch)
      yield asker((q) =>
        Object.assign(q, {
          canTrustEpoch: false,
          isListening: false,
          waiting: 0,
          read: q.answered,
          at: 'listen',
        }),
      )
    if (s.ended.length > 0) yield asker(failInFlight)
    const isGivenUp = s.givenUp > 0 && s.starts > 0 && kindOf(s.state) !== ENDED
    if (isGivenUp && (kindOf(s.state) === STARTING || is('gives up a thread that has begun')))
      yield asker((q) => {
        q.givenUp--
        q.state = stateOf(q.starts, ENDED)
        q.ended.push(q.starts)
        q.isNone = true
      })
  }
  if (s.at === 'send')
    yield asker((q) => Object.assign(q, { asked: q.next, at: isSentBefore ? 'wake' : 'state' }))
  if (s.at === 'state')
    yield asker((q) => Object.assign(q, { seen: q.state, at: isSentBefore ? 'send' : 'wake' }))
  if (s.at === 'wake')
    yield asker((q) => {
      if (kindOf(q.seen) === ASLEEP) for (const t of q.threads) if (t.at === 'asleep') t.at = 'woken'
      if (kindOf(q.seen) === ENDED && q.state === q.seen) start(q)
      if (q.part > 0) put(q)
      else q.at = 'listen'
    })
  if (s.at === 'listen')
    yield asker((q) => {
      q.at = q.isListening || q.next === q.read ? 'idle' : 'wait'
      if (q.at === 'wait' && !is('does not say that it waits before it does')) q.waiting = 1
    })
  if (s.at === 'wait')
    yield asker((q) => {
      const isNews = q.answered !== q.read && !is('waits for answers without comparing')
      Object.assign(q, { isListening: true, canTrustEpoch: isNews, isWaiter: !isNews, at: 'idle' })
      if (is('does not say that it waits before it does')) q.at = 'say'
    })
  if (s.at === 'say') yield asker((q) => Object.assign(q, { waiting: 1, at: 'idle' }))

  /** A thread has died: what it had begun with is lost, and the next one goes on behind it. */
  function failInFlight(q) {
    const of = q.ended.shift()
    if (of !== q.starts && !is('buries whom it is told of, whoever answers now')) return
    if (!is('forgets what was done and not shown')) q.answered = q.done
    q.read = q.answered
    if (q.begun !== q.read) {
      q.lost.push(q.read)
      q.answered = q.begun
      q.done = q.begun
      q.read = q.begun
    }
    if (q.isNone) {
      // All that waits is told that nobody answers.
      for (; q.read < q.next; q.read++) q.lost.push(q.read)
      for (const cursor of ['asked', 'begun', 'done', 'answered']) q[cursor] = q.next
      q.isNone = false
    }
    q.state = stateOf(q.starts, ENDED)
    if (q.next !== q.read) q.at = 'send'
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
        q.ended.push(t.start)
        t.at = 'returned'
      })
    const to = (at) => thread((t) => (t.at = at))
    const begin = (upTo) => thread((t) => Object.assign(t, { at: 'begin', upTo }))
    const isWokenEarly = is('looks who waits before it has said what is answered')
    if (t.at === 'start')
      yield thread((t, q) => {
        const mayBegin =
          q.state === stateOf(t.start, STARTING) || is('begins without asking whether it was given up')
        if (mayBegin) q.state = stateOf(t.start, AWAKE)
        Object.assign(t, { at: mayBegin ? 'look' : 'returned', answered: q.answered })
      })
    if (t.at === 'look') yield s.asked === t.answered ? to('sleepy') : begin(s.asked)
    if (t.at === 'begin')
      yield thread((t, q) => {
        if (is('begins before it says so')) q.times[t.answered]++
        else q.begun = t.answered + 1
        t.at = 'decide'
      })
    if (t.at === 'decide')
      yield thread((t, q) => {
        if (is('begins before it says so')) q.begun = t.answered + 1
        else q.times[t.answered]++
        t.at = 'done'
      })
    if (t.at === 'done')
      yield thread((t, q) => {
        q.done = ++t.answered
        t.at = t.answered < t.upTo ? 'begin' : isWokenEarly ? 'who waits' : 'answered' // shown all at once
      })
    if (t.at === 'answered')
      yield thread((t, q) => {
        q.answered = t.answered
        t.at = isWokenEarly ? (t.isSeen ? 'tell' : 'look') : 'who waits'
      })
    if (t.at === 'who waits')
      yield thread((t, q) => {
        t.isSeen = q.waiting === 1
        t.at = isWokenEarly ? 'answered' : t.isSeen ? 'tell' : 'look'
      })
    if (t.at === 'tell')
      yield thread((t, q) => {
        if (is('says itself that nobody waits')) q.waiting = 0
        t.at = 'told'
      })
    if (t.at === 'told')
      yield thread((t, q) => {
        if (q.isWaiter) Object.assign(q, { isWaiter: false, canTrustEpoch: true })
        t.at = 'look'
      })
    if (t.at === 'sleepy')
      yield thread((t, q) => {
        if (!is('does not say that it sleeps before it does')) q.state = stateOf(t.start, ASLEEP)
        t.at = 'sleep'
      })
    if (t.at === 'sleep')
      yield thread((t, q) => {
        const isNews = q.asked !== t.answered && !is('sleeps without comparing')
        t.at = isNews ? 'woken' : is('does not say that it sleeps before it does') ? 'say' : 'asleep'
      })
    if (t.at === 'say')
      yield thread((t, q) => Object.assign(t, { at: 'asleep' }) && (q.state = stateOf(t.start, ASLEEP)))
    if (t.at === 'asleep' && !isPatient) yield to('end')
    if (t.at === 'woken')
      yield thread((t, q) => Object.assign(t, { at: 'look' }) && (q.state = stateOf(t.start, AWAKE)))
    if (t.at === 'end')
      yield thread((t, q) => {
        q.state = stateOf(t.start, ENDED)
        t.at = is('no look at what was asked after the end was said') ? 'returned' : 'last look'
      })
    if (t.at === 'last look') yield to(s.asked === t.answered ? 'returned' : 'take up')
    if (t.at === 'take up')
      yield thread((t, q) => {
        const mayGoOn =
          q.state === stateOf(t.start, ENDED) || is('goes on after the end without asking whether it may')
        if (mayGoOn) q.state = stateOf(t.start, AWAKE)
        t.at = mayGoOn ? 'look' : 'returned'
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
