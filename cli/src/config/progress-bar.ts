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
