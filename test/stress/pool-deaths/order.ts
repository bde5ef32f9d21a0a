/** What a thread of the pool is ordered to die of, and when: in shared memory, which every new thread of the process is given. */

/** Under this name a thread finds the memory, by `getEnvironmentData`. */
export const ORDERS = 'pool-deaths'

/** Indexes: the manner, for whoever is deciding, or for whoever starts next. */
export const NOW = 0
export const AT_START = 1
/** How many steps (operations of `Atomics`) the thread that has taken an order still does. */
export const STEPS = 2
/** How many orders have been taken. */
export const TAKEN = 3
export const ORDER_WORDS = 4

/** Manners of dying from inside. 0: none is ordered. */
export const INSIDE = ['exit', 'throw', 'memory'] as const
export type Inside = (typeof INSIDE)[number]

export const numberOf = (manner: Inside): number => INSIDE.indexOf(manner) + 1
export const mannerOf = (number: number): Inside => INSIDE[number - 1]!
