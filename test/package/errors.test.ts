import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, sourcesIn, withoutComments } from './root.js'

const CODE = /ERR_MILLRACE_[A-Z0-9_]+/g

/** The members of `ErrorCode`, without other codes in errors.ts. */
function declaredCodes(): string[] {
  const [, union = ''] = /export type ErrorCode =([^;]*?)\n\n/.exec(readText('src/core/errors.ts')) ?? []
  return union.match(CODE) ?? []
}

/** The sections of docs/reference/errors.md: `## ERR_...`, and what stands below. */
function documentedSections(): { code: string; text: string }[] {
  const [, ...sections] = readText('docs/reference/errors.md').split(/^## /m)
  return sections.map((section) => {
    const end = section.indexOf('\n')
    return { code: section.slice(0, end).replaceAll('`', '').trim(), text: section.slice(end).trim() }
  })
}

test('docs/reference/errors.md has one section per error code and no other', () => {
  const declared = declaredCodes()
  assert.ok(declared.length >= 12, `found only ${declared.length} codes`)
  assert.equal(new Set(declared).size, declared.length)
  const documented = documentedSections().map(({ code }) => code)
  assert.equal(documented.toSorted(), declared.toSorted())
})

test('every section says when the error is raised and what to do', () => {
  for (const { code, text } of documentedSections()) {
    assert.match(text, /\*\*When:\*\* \S.{20,}/, code)
    assert.match(text, /\*\*What to do:\*\* \S.{20,}/, code)
  }
})

test('docs/reference/errors.md names no code that does not exist', () => {
  const declared = declaredCodes()
  for (const code of readText('docs/reference/errors.md').match(CODE) ?? [])
    assert.ok(declared.includes(code), code)
})

test('every error code is raised somewhere in src/', () => {
  const raising = sourcesIn('src')
    .filter((file) => file !== 'core/errors.ts')
    .map((file) => withoutComments(readText(`src/${file}`)))
    .join('\n')
  for (const code of declaredCodes()) assert.ok(raising.includes(`'${code}'`), `${code} is raised nowhere`)
})

test.run()
