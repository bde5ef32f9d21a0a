/** The third argument of a method `Symbol.for('nodejs.util.inspect.custom')`, which `util.inspect` calls. */
export type Inspect = (value: unknown, options?: object) => string

/** Formats an object as `Name { field: value }`, without its private parts. */
export function inspectAs(name: string, fields: object, options: object, inspect: Inspect): string {
  return `${name} ${inspect(fields, options)}`
}
