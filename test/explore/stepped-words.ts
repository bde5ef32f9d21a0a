/**
 * Replaces `memory/words.js` in a copy of the built code (`copy.ts`): the same functions, each of which calls
 * the machine. It imports nothing at run time, so the compiled file works in any folder.
 */
import type { Machine } from './machine.js'

export type Words = Int32Array

/** Stands in for the machine while an arena is created. */
const PLAIN = (words: Words) => ({
  write(index: number, value: number) {
    words[index] = value
  },
})
let machine: Machine | undefined

/**
 * Sets the machine. Without one, `write` and `store` write to the array itself: creating an arena needs no
 * others.
 */
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

/** Threads of a machine never sleep on a word. */
export function notify(): void {}

export function isStill(_words: Words, index: number, value: number): boolean {
  return machine!.read(index) === value
}
