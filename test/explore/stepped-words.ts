/**
 * Replaces `memory/words.js` in a copy of the built code (`copy.ts`): the same functions, each of which calls
 * the machine. It imports nothing at run time, so the compiled file works in any folder.
 */
import type { Machine } from './machine.js'

export type Words = Int32Array

/** The index in the machine's words, which are those of a whole buffer. The arena may begin further on. */
const at = ({ byteOffset }: Words, index: number): number => byteOffset / 4 + index

let machine: Machine | undefined

/**
 * Sets the machine. Without one, `read`, `write` and `store` use the array itself: creating arenas needs no
 * others.
 */
export function playOn(next: Machine | undefined): void {
  machine = next
}

export function load(words: Words, index: number): number {
  return machine!.read(at(words, index))
}

export function read(words: Words, index: number): number {
  return machine === undefined ? words[index]! : machine.read(at(words, index))
}

export function readInOrder(words: Words, index: number): number {
  return machine!.read(at(words, index))
}

export function compareExchange(words: Words, index: number, expected: number, next: number): number {
  return machine!.compareExchange(at(words, index), expected, next)
}

/** No scenario has a calendar: only rules with one use pairs. */
export function loadPair(): never {
  throw new Error('the machine has no pairs of words')
}

export const compareExchangePair: () => never = loadPair

export function store(words: Words, index: number, value: number): void {
  if (machine === undefined) words[index] = value
  else machine.write(at(words, index), value)
}

export function write(words: Words, index: number, value: number): void {
  if (machine === undefined) words[index] = value
  else machine.write(at(words, index), value)
}

export function add(words: Words, index: number, value: number): number {
  return machine!.add(at(words, index), value)
}

/** Threads of a machine never sleep on a word. */
export function notify(): void {}

export function isStill(words: Words, index: number, value: number): boolean {
  return machine!.read(at(words, index)) === value
}
