/** Orders to die, in shared memory that every new thread of the process receives. */

/** The key of the memory for `getEnvironmentData`. */
export const ORDERS = 'pool-deaths'

/** Indices of the manner of death: for the next thread that decides, and for the next that starts. */
export const NOW = 0
export const AT_START = 1
/** Index of the number of steps (calls of `Atomics`) between taking an order and the death. */
export const STEPS = 2
/** Index of the number of orders taken. */
export const TAKEN = 3
export const ORDER_WORDS = 4

/** Causes of death inside a thread. An order of 0 means none. */
export const INSIDE = ['exit', 'throw', 'memory'] as const
export type Inside = (typeof INSIDE)[number]

export const numberOf = (manner: Inside): number => INSIDE.indexOf(manner) + 1
export const mannerOf = (number: number): Inside => INSIDE[number - 1]!
