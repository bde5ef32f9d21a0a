/**
 * Stands in for `memory/words.js` in a copy of the built code (`copy.ts`): the same functions, each of which asks the
 * machine. Imports nothing at run time, so that the compiled file can be put anywhere.
 */
import type { Machine } from './machine.js'

export type Words = Int32Array

/** A machine for an arena that is still being made. */
const PLAIN = (words: Words) => ({
  write(index: number, value: number) {
    words[index] = value
  },
})
let machine: Machine | undefined

/** Without one, `write` and `store` (all that making an arena takes) do what they say. */
export function playOn(next: Machine | undefined): void {
  machine = next
}

export function load(_words: Words, index: number): number {
  return machine!.read(index)
}

export function read(_words: Words, index: number): number {
  return machine!.read(index)
}

export function readInOrder(_words: Words, index: number): number {
  return machine!.read(index)
}

export function compareExchange(_words: Words, index: number, expected: number, next: number): number {
  return machine!.compareExchange(index, expected, next)
}

export function store(words: Words, index: number, value: number): void {
  const to = machine ?? PLAIN(words)
  to.write(index, value)
}

export function write(words: Words, index: number, value: number): void {
  const to = machine ?? PLAIN(words)
  to.write(index, value)
}

export function add(_words: Words, index: number, value: number): number {
  return machine!.add(index, value)
}

/** Nobody waits on a word of a machine. */
export function notify(): void {}

export function isStill(_words: Words, index: number, value: number): boolean {
  return machine!.read(index) === value
}
