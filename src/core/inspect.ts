/** What `util.inspect` hands to a method called `Symbol.for('nodejs.util.inspect.custom')`, and `console.log` with it. */
export type Inspect = (value: unknown, options?: object) => string

/** An object as it is shown: `Name { field: value }`, and nothing of the inside. */
export function inspectAs(name: string, fields: object, options: object, inspect: Inspect): string {
  return `${name} ${inspect(fields, options)}`
}
