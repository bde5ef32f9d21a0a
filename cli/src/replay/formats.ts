import { type LoggedRequest, parseLine } from './access-log.js'
import { JSON_FORMATS, jsonParser, type NamedFields, type OTHER } from './json-log.js'
import { parseApplication, parseClassic } from './load-balancer-log.js'

/** Parses a line: a request, a line that has none, or undefined for one that is not of the format. */
export type Parse = (line: string) => LoggedRequest | typeof OTHER | undefined

const TEXT_FORMATS = { common: parseLine, alb: parseApplication, elb: parseClassic } as const

export type FormatName = keyof typeof TEXT_FORMATS | keyof typeof JSON_FORMATS
export const FORMAT_NAMES = [...Object.keys(TEXT_FORMATS), ...Object.keys(JSON_FORMATS)] as FormatName[]

/** What the formats are, for messages. */
export const KNOWN_FORMATS =
  'the Common or Combined Log Format, JSON lines of nginx, pino, Caddy or Traefik, or logs of AWS load balancers'

/** Whether the lines of a format are JSON, in which fields can be named. */
export const isJson = (name: FormatName): name is keyof typeof JSON_FORMATS => name in JSON_FORMATS

export function parserOf(name: FormatName, fields: NamedFields): Parse {
  return isJson(name) ? jsonParser(JSON_FORMATS[name], fields) : TEXT_FORMATS[name]
}

/** As many lines, the first of the log, tell its format. */
export const LINES_TO_GUESS = 200

/**
 * The format in which the most of these lines have a request; any JSON only if no other format has one. With named fields
 * it is one of JSON. Undefined if no line has a request.
 */
export function guessed(lines: readonly string[], fields: NamedFields): FormatName | undefined {
  const isNamed = fields.timeField !== undefined || fields.keyField !== undefined
  let [best, most]: [FormatName | undefined, number] = [undefined, 0]
  for (const name of FORMAT_NAMES) {
    if ((isNamed && !isJson(name)) || (name === 'json' && best !== undefined)) continue
    const parse = parserOf(name, fields)
    const found = lines.filter((line) => typeof parse(line) === 'object').length
    if (found > most) [best, most] = [name, found]
  }
  return best
}
