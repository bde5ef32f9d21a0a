interface CommonJS {
  /** Writes a package folder's dist/ from its esm/. */
  writeCommonJS(folder: string): void
  /** Converts one file of esm/ to what stands in dist/. */
  toCommonJS(code: string, file: string): string
}

/** The step of the build that makes dist/ from esm/. */
export const { writeCommonJS, toCommonJS }: CommonJS = await import(
  new URL('../../scripts/commonjs.mjs', import.meta.url).href
)

/** The subpaths of the package, and the file of src/ that each is, without its ending. */
export const { ENTRIES }: { ENTRIES: Readonly<Record<string, string>> } = await import(
  new URL('../../scripts/entries.mjs', import.meta.url).href
)
