// Scenarios of the model of `log.mjs`, and the rules that it leaves out, each with a scenario that fails without it.
const one = {}
const two = { cost: 2 }
const loan = { lend: true }
const refund = { kind: 'refund' }
const other = { key: 2 }

export const logScenarios = {
  'sliding log: the last unit': { limit: 1, threads: [[one, one], [one]], deaths: true, end: 7 },
  'sliding log: two each': {
    threads: [
      [one, one],
      [one, one],
    ],
    end: 5,
  },
  'sliding log: two each, with the hint': { threads: [[one, one], [one]], hint: true, end: 7 },
  'sliding log: two each, deaths': { threads: [[one, one], [one]], deaths: true, end: 7 },
  'sliding log: three threads': { threads: [[one], [one], [one]], tries: 2, end: 4 },
  'sliding log: costs above 1': { limit: 3, threads: [[two], [two, one]], end: 5 },
  'sliding log: costs above 1, deaths': { limit: 3, threads: [[two], [two]], deaths: true, end: 6 },
  'sliding log: parts of a tick': { limit: 1, sub: 2, threads: [[one, one], [one]], tries: 2, end: 7 },
  'sliding log: a lower limit of a call': {
    limit: 2,
    entries: 3,
    threads: [
      [one, one],
      [one, one],
    ],
    end: 5,
  },
  'sliding log: a refund beside a charge': { threads: [[one], [two], [refund]], tries: 2, end: 4 },
  'sliding log: a refund beside costs': { limit: 3, threads: [[two], [two], [refund]], tries: 2, end: 4 },
  'sliding log: refunds beside each other': { threads: [[one, one, one], [refund], [refund]], end: 4 },
  'sliding log: a refund and deaths': { threads: [[one, one], [refund]], deaths: true, end: 6 },
  'sliding log: given back': {
    threads: [
      [loan, one],
      [loan, one],
    ],
    end: 4,
  },
  'sliding log: given back, and another of its date': { threads: [[loan], [one], [one]], tries: 2, end: 4 },
  'sliding log: given back beside a refund': { threads: [[loan], [one], [refund]], tries: 2, end: 4 },
  'sliding log: given back late beside refunds': { limit: 2, threads: [[loan], [refund, one]], end: 5 },
  'sliding log: two keys': { limit: 1, threads: [[one, one], [other]], end: 12, jumps: [1, 4] },
  'sliding log: two keys, to and fro': { limit: 1, threads: [[one], [other, one]], end: 12, jumps: [4] },
  'sliding log: two keys and a refund': {
    limit: 1,
    threads: [[one], [other], [{ ...refund }]],
    end: 10,
    jumps: [4],
  },
  'sliding log: long rests': { limit: 1, threads: [[one, one, one]], end: 40, jumps: [3, 11, 17] },
  'sliding log: a stalled thread': { limit: 1, threads: [[one], [one, one]], end: 13, jumps: [3] },
}

export const logMistakes = {
  'sliding log: not committed by the word': 'sliding log: a lower limit of a call',
  'sliding log: committed again in its epoch': 'sliding log: costs above 1',
  'sliding log: no new epoch after a take-out': 'sliding log: costs above 1',
  'sliding log: a note beyond a window': 'sliding log: long rests',
  'sliding log: dated by the tick before': 'sliding log: parts of a tick',
  'sliding log: no versions': 'sliding log: given back beside a refund',
  'sliding log: given back after a refund by key': 'sliding log: given back late beside refunds',
  'sliding log: refunds compared before the entries': 'sliding log: given back late beside refunds',
  'sliding log: refunds counted before the entries': 'sliding log: given back beside a refund',
  'sliding log: refunds read after the charge': 'sliding log: given back beside a refund',
  'sliding log: refund without another look at the name': 'sliding log: two keys and a refund',
  'sliding log: a look at the tick that forgets the date': 'sliding log: parts of a tick',
  'sliding log: charged without a look at the tick': 'sliding log: a stalled thread',
  'sliding log: swept without a look at the tick': 'sliding log: two keys',
  'sliding log: one hop': 'sliding log: long rests',
  'sliding log: no sweep': 'sliding log: long rests',
}
