import { grouped } from '../terminal.js'

const WIDEST = 30
const NARROWEST = 5

/** A bar and its text, `████░░░░ 50 %, TEXT`, in fewer than `width` columns. The bar goes first if there is no room. */
export function barLine(part: number, text: string, width: number): string {
  const figures = `${Math.floor(100 * part)} %, ${text}`
  const room = Math.min(WIDEST, width - 2 - figures.length)
  if (room < NARROWEST) return figures
  const filled = Math.floor(room * part)
  return `${'█'.repeat(filled)}${'░'.repeat(room - filled)} ${figures}`
}

/** The bar for `done` of `total`. If there are more than were counted before, they are the total. */
export function countedBarLine(done: number, total: number, width: number): string {
  const most = Math.max(done, total)
  return barLine(most === 0 ? 1 : done / most, `${grouped(done)} of ${grouped(most)}`, width)
}
