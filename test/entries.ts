/** The subpaths of the package, and the file of src/ that each is, without its ending. */
export const { ENTRIES }: { ENTRIES: Readonly<Record<string, string>> } = await import(
  new URL('../../scripts/entries.mjs', import.meta.url).href
)
