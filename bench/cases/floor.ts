import { fileURLToPath } from 'node:url'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { compileAndRun, findCompiler } from '../compiler.js'

const SOURCE = fileURLToPath(new URL('../../../bench/floor.cc', import.meta.url))
const KEYS = [10_000, 1_000_000]
/**
 * Far enough for memory to deliver the cell in time (200 ns at 3 ns per operation), near enough for it to
 * stay cached.
 */
export const DISTANCE = 64

export const floor: Benchmark = {
  title: 'the lower bound in C++: one atomic addition to a flat table of 16-byte cells, in random order',
  units: { ns: 'nanoseconds per operation' },
  contenders: KEYS.flatMap((keys) => [atFloor('plain', keys, 0), atFloor('prefetching', keys, DISTANCE)]),
  goals: KEYS.map((keys) => ({
    label: `${keys.toLocaleString('en')} keys: prefetching ${DISTANCE} operations ahead / plain`,
    unit: 'x',
    value: ratioOf(nameOf('prefetching', keys), nameOf('plain', keys)),
  })),
  unavailable: () =>
    findCompiler() === undefined
      ? 'no C++ compiler found; set CXX, or install c++, g++ or clang++'
      : undefined,
}

/**
 * Compiles the program for each measurement, which takes half a second, so that no outdated program can run.
 */
export function atFloor(variant: string, keys: number, distance: number): Contender {
  return {
    name: nameOf(variant, keys),
    measure({ operations }) {
      const ns = Number(compileAndRun(SOURCE, [keys, operations, distance].map(String)))
      if (!(ns > 0)) throw new Error('floor.cc printed no time')
      return { ns }
    },
  }
}

export function nameOf(variant: string, keys: number): string {
  return `${variant}, ${keys.toLocaleString('en')} keys`
}
