interface CommonJS {
  /** Writes a package folder's dist/ from its esm/. */
  writeCommonJS(folder: string): void
  /** Converts one file of esm/ to what stands in dist/. */
  toCommonJS(code: string, file: string): string
  /** The files that a package exports, without their extension. */
  entriesOf(folder: string): string[]
}

/** The step of the build that makes dist/ from esm/. */
export const { writeCommonJS, toCommonJS, entriesOf }: CommonJS = await import(
  new URL('../../scripts/commonjs.mjs', import.meta.url).href
)
