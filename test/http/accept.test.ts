// run: also-full, also-long, modules
// The preferred form by the header Accept, compared with the package negotiator, which Express uses.

import Negotiator from 'negotiator'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type BodyForm, preferredForm } from '#millrace/http/accept.js'
import fc from '../fast-check.js'
import { sized } from '../size.js'

const NUM_RUNS = sized({ quick: 500, full: 20_000 })

const FORMS: Readonly<Record<string, BodyForm>> = {
  'application/problem+json': 'problem',
  'application/json': 'problem',
  'text/plain': 'text',
  'text/html': 'html',
}

/** The form by negotiator; a problem document if nothing is acceptable. */
function negotiated(accept: string): BodyForm {
  const type = new Negotiator({ headers: { accept } }).mediaType(Object.keys(FORMS))
  return type === undefined ? 'problem' : FORMS[type]!
}

for (const [client, accept, form] of [
  ['none', undefined, 'problem'],
  ['an empty header', '', 'problem'],
  ['curl and fetch', '*/*', 'problem'],
  ['axios', 'application/json, text/plain, */*', 'problem'],
  ['Chrome', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', 'html'],
  ['one that wants text', 'text/plain', 'text'],
  ['one that wants any text', 'text/*', 'text'],
  ['one that wants JSON', 'application/json', 'problem'],
  ['one that wants JSON rather than HTML', 'text/html;q=0.5, application/json', 'problem'],
  ['one that wants problem documents', 'text/html;q=0.5, application/problem+json', 'problem'],
  ['one that refuses JSON', '*/*, application/*;q=0', 'text'],
  ['one that refuses all', '*/*;q=0', 'problem'],
  ['an image', 'image/avif,image/webp', 'problem'],
  ['a version of HTML', 'text/html;level=1', 'problem'],
  ['capitals', 'TEXT/HTML;Q=0.9, Application/JSON;q=0.8', 'html'],
  ['a comma in a string', 'text/html;v="a, text/plain;q=1, b", text/plain;q=0.1', 'text'],
  ['a quote in a string', 'image/png;v="\\"", text/html', 'html'],
] as const) {
  test(`${client}: ${form}`, () => {
    assert.is(preferredForm(accept), form)
    if (accept !== undefined) assert.is(negotiated(accept), form, 'negotiator')
  })
}

/** Offered types often, others sometimes. */
const types = ['*/*', 'text/*', 'application/*', 'image/*', 'image/png', 'text/csv', ...Object.keys(FORMS)]
const space = fc.constantFrom('', ' ', '\t', '  ')
const weight = fc.constantFrom('', 'q=0', 'q=1', 'q=0.5', 'q=0.500', 'Q=0.9', 'q=1.000', 'q=0.001', 'q=0.')
const parameter = fc.constantFrom('', '', '', 'level=1', 'v="a,b;c"', 'v="\\"q=0,"')
const capitals = fc.boolean()
const range = fc
  .tuple(fc.constantFrom(...types), weight, parameter, space, space, capitals)
  .map(([type, q, other, before, after, isUpper]) => {
    const name = isUpper ? type.toUpperCase() : type
    const parameters = [other, q].filter((each) => each !== '').map((each) => `${after};${before}${each}`)
    return `${before}${name}${parameters.join('')}${after}`
  })

test('well-formed headers are read as negotiator reads them', () => {
  const seen = new Set<BodyForm>()
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 8 }), (ranges) => {
      const accept = ranges.join(',')
      const form = preferredForm(accept)
      seen.add(form)
      assert.is(form, negotiated(accept), JSON.stringify(accept))
    }),
    { numRuns: NUM_RUNS },
  )
  assert.is(seen.size, 3)
})

test('garbage is read without an error', () => {
  const fragments = [',', ';', '=', '"', '\\', '/', '*', 'q', 'text/html', 'application/json', '0.5', ' ']
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...fragments) })),
      (accept) => assert.ok(['problem', 'text', 'html'].includes(preferredForm(accept))),
    ),
    { numRuns: NUM_RUNS },
  )
  for (const other of [null, 5, ['text/html'], {}, Symbol('accept')])
    assert.is(preferredForm(other), 'problem')
  for (const weightless of [
    'text/html;q=x',
    'text/html;q=2',
    'text/html;q=-1',
    'text/html;q=NaN',
    'text/html;q',
  ]) {
    assert.is(preferredForm(weightless), weightless.endsWith('q') ? 'html' : 'problem')
  }
})

test('a long header is not read', () => {
  const fill = (length: number) => `text/html,${'a'.repeat(length - 'text/html,'.length)}`
  assert.is(preferredForm(fill(1_024)), 'html')
  assert.is(preferredForm(fill(1_025)), 'problem')
  assert.is(preferredForm(fill(65_536)), 'problem')
})

test.run()
