import { type LimiterOptions, MillraceError } from 'millrace'
import { test } from 'uvu'
import { START_MS } from '../limiter/support.js'
import { decidedBy, type Either, ENGINES } from './both.js'

type Verify = (limiter: Either, clock: { advance(ms: number): void }) => Promise<void>

/** Claims about limiters of 5 a minute, by their names. */
export type Claims = Readonly<Record<string, Verify>>

/** After so long, a charge at the start of such a test has left the window. */
export const END_MS = 61_000 - (START_MS % 1_000)

/** Tests every claim with both engines, the claims of each group about limiters with its options. */
export function testWithBoth(groups: readonly (readonly [Claims, Partial<LimiterOptions>])[]): void {
  for (const [claims, options] of groups) {
    for (const [claim, verify] of Object.entries(claims)) {
      for (const engine of ENGINES) {
        test(`${engine}: ${claim}`, async () => {
          await using made = decidedBy(engine, options)
          await verify(made.limiter, made.clock)
        })
      }
    }
  }
  test.run()
}

/** The code of the error that `act` rejects with. */
export async function codeOf(act: () => Promise<unknown>): Promise<string> {
  const error = await thrownBy(act)
  if (error === undefined) return 'nothing was thrown'
  if (error instanceof MillraceError) return error.code
  throw error
}

export async function thrownBy(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  return undefined
}
