/** The forms of an answer's body. */
export type BodyForm = 'problem' | 'text' | 'html'

/**
 * The types that are offered, the best first. A client that asks for JSON gets a problem document, which is
 * JSON. Clients such as axios list JSON, text and anything, with equal weights: they would get text if
 * `application/json` were not offered.
 */
const OFFERED: readonly { readonly type: string; readonly subtype: string; readonly form: BodyForm }[] = [
  { type: 'application', subtype: 'problem+json', form: 'problem' },
  { type: 'application', subtype: 'json', form: 'problem' },
  { type: 'text', subtype: 'plain', form: 'text' },
  { type: 'text', subtype: 'html', form: 'html' },
]

/** A longer header is not read. Those of browsers have up to 200 characters. */
const MAX_LENGTH = 1_024

/** How exactly a media range names a type: all types, the subtypes of one, or the type itself. */
const NOT = -1
const ANY = 0
const ANY_SUBTYPE = 1
const EXACT = 2

/** How a type is accepted: by its most exact range, with that range's weight and position. */
interface Match {
  exactness: number
  weight: number
  position: number
}

/**
 * The form that a header `Accept` prefers (RFC 9110, section 12.5.1). A problem document if it is missing,
 * too long or accepts nothing that is offered. Ranges with parameters, such as `text/html;level=1`, are
 * ignored. The header is read once, from left to right.
 */
export function preferredForm(accept: unknown): BodyForm {
  if (typeof accept !== 'string' || accept.length > MAX_LENGTH) return 'problem'
  const matches = OFFERED.map((): Match => ({ exactness: NOT, weight: 0, position: 0 }))
  for (const [position, range] of splitOutsideQuotes(accept, ',').entries()) {
    const [name, ...parameters] = splitOutsideQuotes(range, ';')
    const weight = weightOf(parameters)
    if (weight !== undefined) takeRange(matches, name!.trim().toLowerCase(), weight, position)
  }
  let best = 0
  for (let i = 1; i < matches.length; i++) if (isPreferred(matches[i]!, matches[best]!)) best = i
  return matches[best]!.weight > 0 ? OFFERED[best]!.form : 'problem'
}

function takeRange(matches: readonly Match[], name: string, weight: number, position: number): void {
  for (const [i, match] of matches.entries()) {
    const exactness = exactnessOf(name, i)
    if (exactness === NOT || exactness < match.exactness) continue
    if (exactness === match.exactness && weight < match.weight) continue
    Object.assign(match, { exactness, weight, position })
  }
}

function exactnessOf(name: string, offered: number): number {
  const { type, subtype } = OFFERED[offered]!
  if (name === `${type}/${subtype}`) return EXACT
  if (name === `${type}/*`) return ANY_SUBTYPE
  return name === '*/*' ? ANY : NOT
}

/** The weight `q` of a range, 0 to 1; undefined if it has other parameters. */
function weightOf(parameters: readonly string[]): number | undefined {
  let weight: number | undefined
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=')
    if (equals < 0) continue
    if (parameter.slice(0, equals).trim().toLowerCase() !== 'q') return undefined
    weight ??= Number(parameter.slice(equals + 1))
  }
  if (weight === undefined) return 1
  return weight >= 0 && weight <= 1 ? weight : 0
}

function isPreferred(one: Match, other: Match): boolean {
  if (one.weight !== other.weight) return one.weight > other.weight
  if (one.exactness !== other.exactness) return one.exactness > other.exactness
  return one.position < other.position
}

/** Splits at a separator, but not within a quoted string. */
function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === '"') isQuoted = !isQuoted
    else if (character === '\\' && isQuoted) i++
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}
