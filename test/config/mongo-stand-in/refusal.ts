/** An error as a server replies it. */
export class Refusal extends Error {
  readonly code: number
  readonly codeName: string
  readonly labels: readonly string[]

  constructor(code: number, codeName: string, message: string, labels: readonly string[] = []) {
    super(message)
    this.code = code
    this.codeName = codeName
    this.labels = labels
  }
}

/** The refusal of what a real server may take in a way that the stand-in does not know. */
export const unknown = (what: string): Refusal =>
  new Refusal(9, 'FailedToParse', `the stand-in does not know ${what}`)

/** Refuses an object with other fields than these. */
export function onlyFields(object: object, known: readonly string[], where: string): void {
  for (const name of Object.keys(object)) if (!known.includes(name)) throw unknown(`${name} in ${where}`)
}
