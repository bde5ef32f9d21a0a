import { fileURLToPath } from 'node:url'
import { type Benchmark, type Contender, timesOf } from '../benchmark.js'
import { compileAndRun, findCompiler } from '../compiler.js'

const SOURCE = fileURLToPath(new URL('../../../bench/floor.cc', import.meta.url))
const KEYS = [10_000, 1_000_000]
/** Far enough ahead for a cell to come from memory (some 200 ns at 3 ns an operation), near enough to be there still. */
export const DISTANCE = 64

export const floor: Benchmark = {
  title: 'the floor in C++: one atomic addition to a flat table of 16-byte cells, in random order',
  units: { ns: 'nanoseconds an operation' },
  contenders: KEYS.flatMap((keys) => [atFloor('linear', keys, 0), atFloor('prefetching', keys, DISTANCE)]),
  goals: KEYS.map((keys) => ({
    what: `${keys.toLocaleString('en')} keys: prefetching ${DISTANCE} ahead / plain`,
    unit: 'x',
    value: timesOf(nameOf('prefetching', keys), nameOf('linear', keys)),
  })),
  unavailable: () =>
    findCompiler() === undefined
      ? 'there is no C++ compiler: name one in CXX, or install c++, g++ or clang++'
      : undefined,
}

/** Compiled anew for each measurement: half a second, and nothing that is kept can be out of date. */
export function atFloor(how: string, keys: number, distance: number): Contender {
  return {
    name: nameOf(how, keys),
    measure({ operations }) {
      const ns = Number(compileAndRun(SOURCE, [keys, operations, distance].map(String)))
      if (!(ns > 0)) throw new Error('the floor printed no time')
      return { ns }
    },
  }
}

export function nameOf(how: string, keys: number): string {
  return `${how}, ${keys.toLocaleString('en')} keys`
}
