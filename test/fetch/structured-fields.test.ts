// run: also-long, modules
// The reader of structured fields against the package structured-headers, on the fields of the drafts, on odd ones,
// and on thousands that are one or two characters away from these.

import * as reference from 'structured-headers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type BareItem, type Item, parseDictionary, parseList } from '#millrace/fetch/structured-fields.js'
import fc from '../fast-check.js'

const CORPUS = [
  '"default";r=50;t=30',
  '"burst";r=0;t=1, "hourly";r=99;t=3000',
  '"default";r=50;t=30;pk=:dHJpYWwxMjEzMjM=:',
  'default;r=50',
  'limit=100, remaining=0, reset=5',
  'limit=10,remaining=0,\treset=5',
  '100, 100;w=60;comment="a \\"fixed\\" window", 5000;w=3600',
  '"a\\\\b";q=1.250;u=?1;v=?0;x',
  '*to/ken:x, -999999999999999, 123456789012.123',
  'a=1;b;c=?0, d, e=tok, a=2',
  '',
  '   ',
  ' 1 ',
  '1; b=2',
]
/** Of the items that structured-headers 2.1 reads only in part: it wants a date to be the last, for example. */
const EXACT = ['%"caf%c3%a9";r=1, 1', '1, @1659578233']
const BROKEN = [
  '"a',
  '1,',
  ',1',
  '1 2',
  '1.',
  '1.2345',
  '1234567890123456',
  '"é"',
  'a=',
  'A=1',
  '1;B=2',
  '1 ;b',
  '\t1',
  '?2',
  '1;=2',
  '--1',
  '"\\x"',
]

type Value = reference.BareItem

/** A bare item of the reference as ours. Bytes and display strings are compared by their kind alone. */
function plain(value: Value): BareItem {
  if (value instanceof reference.Token) return value.toString()
  if (value instanceof Date) return value.getTime() / 1_000
  if (value instanceof reference.DisplayString) return 'display'
  return typeof value === 'object' ? 'bytes' : value
}

/** Ours, with texts that stay encoded replaced by their kind. A token and a string can't look like that. */
function known(value: BareItem): BareItem {
  if (typeof value !== 'string') return value
  return /^:[^\0]*:$/.test(value) ? 'bytes' : /^%"/.test(value) ? 'display' : value
}

type Plain = readonly [BareItem, [string, BareItem][]]
const ofOurs = ({ value, params }: Item): Plain => [
  known(value),
  [...params].map(([key, each]) => [key, known(each)]),
]
const ofTheirs = ([value, params]: reference.Item): Plain => [
  plain(value),
  [...params].map(([key, each]) => [key, plain(each)]),
]

const isInner = (member: reference.Item | reference.InnerList): member is reference.InnerList =>
  Array.isArray(member[0])

/** What the reference reads; undefined for an error, and for a text with an inner list. */
function expected<T extends Iterable<unknown>, R>(
  parse: (text: string) => T,
  text: string,
  use: (parsed: T) => R,
): R | undefined {
  try {
    return use(parse(text))
  } catch (error) {
    if (error instanceof reference.ParseError || error instanceof InnerList) return undefined
    throw error
  }
}
class InnerList extends Error {}
function checked(member: reference.Item | reference.InnerList): Plain {
  if (isInner(member)) throw new InnerList()
  return ofTheirs(member)
}

function compare(text: string): { isList: boolean; isDictionary: boolean } {
  const list = expected(reference.parseList, text, (members) => members.map(checked))
  const dictionary = expected(reference.parseDictionary, text, (members) =>
    [...members].map(([key, member]) => [key, checked(member)]),
  )
  assert.equal(parseList(text)?.map(ofOurs), list, `list ${JSON.stringify(text)}`)
  const ours = parseDictionary(text)
  const entries = ours && [...ours].map(([key, item]) => [key, ofOurs(item)])
  const byKey = (all: unknown[][] | undefined) => all?.toSorted((a, b) => (`${a[0]}` < `${b[0]}` ? -1 : 1))
  assert.equal(byKey(entries), byKey(dictionary), `dictionary ${JSON.stringify(text)}`)
  return { isList: list !== undefined, isDictionary: dictionary !== undefined }
}

test('every field of the corpus is read as by structured-headers', () => {
  for (const text of [...CORPUS, ...EXACT]) {
    const { isList, isDictionary } = compare(text)
    assert.ok(isList || isDictionary, text)
  }
})

test('a malformed field is ignored as a whole', () => {
  for (const text of BROKEN) {
    compare(text)
    assert.is(parseList(text), undefined, text)
    assert.is(parseDictionary(text), undefined, text)
  }
})

test('a display string is in quotes, and a percent sign begins an encoded character', () => {
  for (const text of ['%"caf%C3"', '%"caf%c"', '%"caf', '%caf']) assert.is(parseList(text), undefined, text)
})

test('a list with an inner list is not read', () => {
  assert.is(parseList('("a" "b");r=1'), undefined)
  assert.is(parseDictionary('a=(1 2)'), undefined)
})

test('fields that are a few characters away from the corpus are read alike', () => {
  const character = fc.constantFrom(...'"\\;=,.?:*-_ \ta1Z0é()')
  const edit = fc.record({
    at: fc.nat(60),
    remove: fc.nat(2),
    insert: fc.string({ unit: character, maxLength: 2 }),
  })
  const texts = fc
    .tuple(fc.constantFrom(...CORPUS), fc.array(edit, { minLength: 1, maxLength: 3 }))
    .map(([text, edits]) =>
      edits.reduce((all, { at, remove, insert }) => all.slice(0, at) + insert + all.slice(at + remove), text),
    )
  let read = 0
  let refused = 0
  fc.assert(
    fc.property(texts, (text) => {
      const { isList, isDictionary } = compare(text)
      if (isList || isDictionary) read++
      else refused++
    }),
    { numRuns: 5_000 },
  )
  assert.ok(read > 500 && refused > 500, `${read} read, ${refused} refused`)
})

test.run()
