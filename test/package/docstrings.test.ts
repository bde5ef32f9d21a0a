// run: typescript, full
// Every export of the package has a docstring that suffices in an editor, and the code of every `@example` compiles.
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type tsModule from './oldest-typescript/node_modules/typescript/lib/typescript.js'
import { root } from './root.js'

type TypeScript = typeof import('./oldest-typescript/node_modules/typescript/lib/typescript.js')
const ts: TypeScript = createRequire(join(root, 'test/package/oldest-typescript/package.json'))('typescript')

const ENTRY = join(root, 'dist/index.d.mts')

interface Doc {
  /** Such as `Limiter.check`. */
  readonly name: string
  readonly node: tsModule.Declaration
  /** The name of the file that declares it. */
  readonly file: string
  readonly text: string
  readonly tags: readonly tsModule.JSDocTagInfo[]
}

interface Example {
  readonly name: string
  readonly file: string
  readonly code: string
}

/** A program of the package's declarations, and of files that exist only in memory. */
function programOf(virtual: ReadonlyMap<string, string>): tsModule.Program {
  const options: tsModule.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.Node16,
    moduleResolution: ts.ModuleResolutionKind.Node16,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.getCurrentDirectory = () => root
  host.fileExists = (file) => virtual.has(file) || fileExists(file)
  host.readFile = (file) => virtual.get(file) ?? readFile(file)
  host.getSourceFile = (file, languageVersion, ...rest) => {
    const code = virtual.get(file)
    if (code === undefined) return getSourceFile(file, languageVersion, ...rest)
    return ts.createSourceFile(file, code, languageVersion)
  }
  return ts.createProgram([ENTRY, ...virtual.keys()], options, host)
}

/** The declarations of the package's exports and of their members, overload by overload, without internal ones. */
function docsOf(program: tsModule.Program): Doc[] {
  const checker = program.getTypeChecker()
  const docs: Doc[] = []
  const add = (name: string, node: tsModule.Declaration) => {
    const file = relative(root, node.getSourceFile().fileName)
    if (!file.startsWith('dist')) return
    const [text, tags] = docOf(checker, node)
    if (!tags.some((tag) => tag.name === 'internal')) docs.push({ name, node, file, text, tags })
  }
  const module = checker.getSymbolAtLocation(program.getSourceFile(ENTRY)!)!
  for (const exported of checker.getExportsOfModule(module)) {
    const { name } = exported
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    for (const node of symbol.declarations!) add(name, node)
    for (const [key, member] of symbol.members ?? []) {
      const isNamed = !String(key).startsWith('__') && !(member.flags & ts.SymbolFlags.TypeParameter)
      if (isNamed) for (const node of member.declarations!) add(`${name}.${key}`, node)
    }
  }
  return docs
}

/** The text and the tags of one declaration, not of its other overloads. */
function docOf(checker: tsModule.TypeChecker, node: tsModule.Declaration): [string, tsModule.JSDocTagInfo[]] {
  const signature = isCallable(node) ? checker.getSignatureFromDeclaration(node) : undefined
  const symbol = checker.getSymbolAtLocation(ts.getNameOfDeclaration(node)!)!
  const { getDocumentationComment, getJsDocTags } = signature ?? symbol
  const text = getDocumentationComment.call(signature ?? symbol, checker)
  return [ts.displayPartsToString(text), getJsDocTags.call(signature ?? symbol, checker)]
}

function isCallable(node: tsModule.Node): node is tsModule.FunctionDeclaration | tsModule.MethodSignature {
  return ts.isFunctionDeclaration(node) || ts.isMethodSignature(node) || ts.isMethodDeclaration(node)
}

function textsOf({ tags }: Doc, tagName: string): string[] {
  return tags.filter(({ name }) => name === tagName).map(({ text }) => ts.displayPartsToString(text).trim())
}

/** What the docstring lacks. */
function lacksOf(doc: Doc): string[] {
  const lacks: string[] = []
  const { name, node } = doc
  if (doc.text.trim() === '') lacks.push(`${name}: a description`)
  if (!isCallable(node)) return lacks
  const params = textsOf(doc, 'param')
  for (const { name: parameter } of node.parameters) {
    const isDescribed = params.some((text) => new RegExp(`^${parameter.getText()} \\S`).test(text))
    if (!isDescribed) lacks.push(`${name}: @param ${parameter.getText()}`)
  }
  if (node.type?.getText() !== 'void' && textsOf(doc, 'returns').every((text) => text === '')) {
    lacks.push(`${name}: @returns`)
  }
  if (textsOf(doc, 'example').length === 0) lacks.push(`${name}: @example`)
  return lacks
}

function examplesOf(docs: readonly Doc[]): Example[] {
  return docs.flatMap((doc) =>
    textsOf(doc, 'example').map((text) => {
      const { 1: code } = /^```ts\n([\s\S]*?)\n```$/.exec(text) ?? []
      if (code === undefined) throw new Error(`${doc.name}: an @example is one block of ts: ${text}`)
      return { name: doc.name, file: doc.file, code }
    }),
  )
}

/**
 * An example as a module. If it declares no `limiter`, there is one, of the type that declares the method. In
 * the same way there is a group `logins`.
 */
function moduleOf({ file, code }: Example): string {
  if (/\b(const|let) limiter\b/.test(code)) return code
  if (/\blogins\b/.test(code) && !/\bconst logins\b/.test(code)) {
    const type = file.endsWith('async-limiter-group.d.ts') ? 'AsyncLimiterGroup' : 'LimiterGroup'
    return `declare const logins: import('millrace').${type}<'account' | 'address'>\n${code}\nexport {}\n`
  }
  const type = file.endsWith('async-limiter.d.ts') ? 'AsyncLimiter' : 'Limiter'
  return `declare const limiter: import('millrace').${type}\n${code}\nexport {}\n`
}

/** The errors of the examples, each with the name of its declaration. */
function errorsIn(examples: readonly Example[]): string[] {
  const files = new Map(examples.map((example, i) => [join(root, `build/example-${i}.mts`), example]))
  const program = programOf(new Map([...files].map(([file, example]) => [file, moduleOf(example)])))
  return [...files].flatMap(([file, { name }]) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(file))
      .map(({ messageText }) => `${name}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`),
  )
}

const docs = docsOf(programOf(new Map()))
const examples = examplesOf(docs)

test('every export and each of its members has a description; functions also @param, @returns and @example', () => {
  for (const name of [
    'createLimiter',
    'Limiter.check',
    'AsyncLimiter.wait',
    'MillraceError.code',
    'OnFull',
  ]) {
    assert.ok(
      docs.some((doc) => doc.name === name),
      `${name} was not found`,
    )
  }
  assert.equal(docs.flatMap(lacksOf), [])
})

test('the code of every @example compiles; a mistake in one is found', () => {
  assert.ok(examples.length > 40, `only ${examples.length} examples were found`)
  const wrong = { name: 'wrong', file: 'dist/api/limiter.d.ts', code: "limiter.chek('user:42')" }
  const [first, ...rest] = errorsIn([wrong, ...examples])
  assert.match(first!, /^wrong: .*chek/)
  assert.equal(rest, [])
})

test.run()
