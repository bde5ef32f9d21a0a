/**
 * Inlines the functions of `memory/words.js` in compiled code, for the case `words`, which compares both. The
 * parser covers only what the compiler's output contains: strings, comments and nesting, but no regular
 * expressions with quotes or brackets.
 */

type Rewrite = (words: string, index: string, values: readonly string[]) => string

/** The body of each function of words.js. */
const REWRITES: Readonly<Record<string, Rewrite>> = {
  load: (words, index) => `Atomics.load(${words}, ${index})`,
  compareExchange: (words, index, values) =>
    `Atomics.compareExchange(${words}, ${index}, ${values.join(', ')})`,
  loadPair: (words, index) => `Atomics.load(${pairs(words)}, ${index} / 2)`,
  compareExchangePair: (words, index, values) =>
    `Atomics.compareExchange(${pairs(words)}, ${index} / 2, ${values.join(', ')})`,
  store: (words, index, values) => `Atomics.store(${words}, ${index}, ${values.join(', ')})`,
  add: (words, index, values) => `Atomics.add(${words}, ${index}, ${values.join(', ')})`,
  notify: (words, index) => `Atomics.notify(${words}, ${index})`,
  read: (words, index) => `${words}[${index}]`,
  readInOrder: (words, index) =>
    process.arch === 'x64' ? `${words}[${index}]` : `Atomics.load(${words}, ${index})`,
  write: (words, index, values) => `(${words}[${index}] = ${values.join(', ')})`,
  isStill: (words, index, [value]) =>
    process.arch === 'x64'
      ? `(Atomics.load(${words}, ${index}) === ${value})`
      : `(Atomics.compareExchange(${words}, ${index}, ${value}, ${value}) === ${value})`,
}

const pairs = (words: string): string => `new BigInt64Array(${words}.buffer, ${words}.byteOffset, 64)`

const IMPORT = /^import \{([^}]*)\} from '[^']*\/words\.js';?$/m
const STRING_OR_COMMENT =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\[\s\S]|[^`\\])*`/y
const WORD = /[\w$]+/y
const REFERENCE = /^[\w$.#]+$/

/**
 * Returns the code with each call replaced; the unused import stays. Code that does not import words.js is
 * returned unchanged.
 * @throws Error if the code imports a function of words.js that has no rewrite
 */
export function withDirectWords(code: string): string {
  const imported = IMPORT.exec(code)
  if (!imported) return code
  const names = imported[1]!.split(',').map((name) => name.trim())
  const unknown = names.find((name) => name !== '' && !Object.hasOwn(REWRITES, name))
  if (unknown !== undefined) throw new Error(`no rewrite for '${unknown}' of words.js`)
  return replaceCalls(code, new Set(names))
}

function replaceCalls(code: string, names: ReadonlySet<string>): string {
  let replaced = ''
  let at = 0
  while (at < code.length) {
    const kept = matchAt(STRING_OR_COMMENT, code, at)
    const word = kept === '' ? matchAt(WORD, code, at) : ''
    const isMember = /(?<!\.\.)[.#]$/.test(replaced.slice(-3))
    at += Math.max(1, kept.length + word.length)
    if (!names.has(word) || isMember || code[at] !== '(') {
      replaced += kept || word || code[at - 1]
      continue
    }
    const call = readArguments(code, at)
    if (/^\s*\{/.test(code.slice(call.end))) {
      replaced += word // the definition of a method with that name, not a call
      continue
    }
    const [words, index, ...values] = call.values.map((value) => replaceCalls(value.trim(), names))
    replaced += REWRITES[word]!(REFERENCE.test(words!) ? words! : `(${words})`, index!, values)
    at = call.end
  }
  return replaced
}

/**
 * The arguments of a call whose parenthesis opens at `open`, and the position after the closing parenthesis.
 */
function readArguments(code: string, open: number): { values: string[]; end: number } {
  const values: string[] = []
  let depth = 0
  let start = open + 1
  for (let at = open; at < code.length; at++) {
    const kept = matchAt(STRING_OR_COMMENT, code, at)
    if (kept !== '') {
      at += kept.length - 1
      continue
    }
    const character = code[at]!
    if ('([{'.includes(character)) depth++
    else if (')]}'.includes(character)) depth--
    if (depth === 0 || (depth === 1 && character === ',')) {
      values.push(code.slice(start, at))
      start = at + 1
    }
    if (depth === 0) return { values, end: at + 1 }
  }
  throw new Error(`no closing parenthesis in: ${code.slice(open, open + 80)}`)
}

function matchAt(pattern: RegExp, code: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(code)?.[0] ?? ''
}
