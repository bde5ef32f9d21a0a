// Replaces the names of numeric constants by their values in the ES modules of a package, as TypeScript does
// with `const enum`. V8 knows the values anyway, but it limits how many bytes of bytecode it inlines into one
// function, and each name takes three to twelve bytes where a number takes two. Without the names a whole
// decision fits.
import { dirname, join } from 'node:path/posix'
import { parse } from 'acorn'

/**
 * Takes and returns a map from file name to code. The constants are top-level `const` declarations of a
 * number, or of an object of numbers that is used as `NAME.PROPERTY`, in this file or imported.
 */
export function foldConstants(codes) {
  const modules = new Map()
  for (const [file, code] of codes) {
    modules.set(file, { code, tree: parse(code, { ecmaVersion: 'latest', sourceType: 'module' }) })
  }
  const constants = new Map()
  for (const file of modules.keys()) constantsOf(file, modules, constants)
  return new Map(
    [...modules].map(([file, { code, tree }]) => [file, replaced(code, tree, constants.get(file))]),
  )
}

/** The constants that a module can name, by name: numbers, and objects of numbers. */
function constantsOf(file, modules, constants) {
  if (constants.has(file)) return constants.get(file)
  const own = new Map()
  constants.set(file, own) // before the imports, which may be circular
  for (const node of modules.get(file)?.tree.body ?? []) {
    const statement = node.type === 'ExportNamedDeclaration' ? node.declaration : node
    if (node.type === 'ImportDeclaration') {
      const source = join(dirname(file), node.source.value)
      if (!modules.has(source)) continue
      const theirs = constantsOf(source, modules, constants)
      for (const { type, imported, local } of node.specifiers) {
        if (type !== 'ImportSpecifier' || !theirs.has(imported.name)) continue
        own.set(local.name, theirs.get(imported.name))
      }
    } else if (statement?.type === 'VariableDeclaration' && statement.kind === 'const') {
      for (const { id, init } of statement.declarations) {
        const value = id.type === 'Identifier' && init ? numberOf(init, own) : undefined
        if (value !== undefined) own.set(id.name, value)
      }
    }
  }
  return own
}

const OPERATORS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '**': (a, b) => a ** b,
  '<<': (a, b) => a << b,
  '|': (a, b) => a | b,
  '&': (a, b) => a & b,
}

/** The number or the object of numbers that an expression is, or undefined. */
function numberOf(node, known) {
  if (node.type === 'Literal') return typeof node.value === 'number' ? node.value : undefined
  if (node.type === 'Identifier') return known.get(node.name)
  if (node.type === 'MemberExpression') return memberOf(node, known)
  if (node.type === 'UnaryExpression') {
    const value = numberOf(node.argument, known)
    if (typeof value !== 'number') return undefined
    return node.operator === '-' ? -value : node.operator === '~' ? ~value : undefined
  }
  if (node.type === 'BinaryExpression' && Object.hasOwn(OPERATORS, node.operator)) {
    const [a, b] = [numberOf(node.left, known), numberOf(node.right, known)]
    return typeof a === 'number' && typeof b === 'number' ? OPERATORS[node.operator](a, b) : undefined
  }
  if (node.type !== 'ObjectExpression' || node.properties.length === 0) return undefined
  const object = {}
  for (const { type, key, computed, shorthand, value } of node.properties) {
    if (type !== 'Property' || computed || shorthand || key.type !== 'Identifier') return undefined
    const number = numberOf(value, known)
    if (typeof number !== 'number') return undefined
    object[key.name] = number
  }
  return object
}

function memberOf({ object, property, computed, optional }, known) {
  if (computed || optional || object.type !== 'Identifier' || property.type !== 'Identifier') return undefined
  const value = known.get(object.name)
  return typeof value === 'object' && Object.hasOwn(value, property.name) ? value[property.name] : undefined
}

/** The code with the uses of constants replaced, each with its name in a comment. */
function replaced(code, tree, known) {
  const uses = []
  const local = new Set()
  visit(tree, undefined, (node, parent) => {
    for (const name of localNames(node, parent, tree)) local.add(name)
    if (node.type === 'MemberExpression' && memberOf(node, known) !== undefined) {
      uses.push({ node, name: node.object.name, value: memberOf(node, known) })
    } else if (
      node.type === 'Identifier' &&
      isUse(node, parent) &&
      typeof known.get(node.name) === 'number'
    ) {
      uses.push({ node, name: node.name, value: known.get(node.name) })
    }
  })
  let folded = code
  for (const { node, name, value } of uses.sort((a, b) => b.node.start - a.node.start)) {
    if (local.has(name)) continue // some use may be of the local variable
    const text = `${value < 0 ? `(${value})` : value} /* ${code.slice(node.start, node.end)} */`
    folded = folded.slice(0, node.start) + text + folded.slice(node.end)
  }
  return folded
}

/** The names of the variables and parameters that a node declares inside a function or a block. */
function localNames(node, parent, tree) {
  if (node.type === 'VariableDeclaration') {
    const isTop = parent === tree || parent.type === 'ExportNamedDeclaration'
    return isTop ? [] : node.declarations.flatMap(({ id }) => namesIn(id))
  }
  if (node.type === 'CatchClause') return node.param ? namesIn(node.param) : []
  return /Function/.test(node.type) ? node.params.flatMap(namesIn) : []
}

/** The names that a pattern binds. */
function namesIn(pattern) {
  if (pattern === null) return []
  if (pattern.type === 'Identifier') return [pattern.name]
  if (pattern.type === 'AssignmentPattern') return namesIn(pattern.left)
  if (pattern.type === 'RestElement') return namesIn(pattern.argument)
  if (pattern.type === 'ArrayPattern') return pattern.elements.flatMap(namesIn)
  return pattern.properties.flatMap((property) => namesIn(property.value ?? property.argument))
}

function visit(node, parent, found) {
  found(node, parent)
  for (const child of Object.values(node)) {
    for (const each of Array.isArray(child) ? child : [child]) {
      if (typeof each?.type === 'string') visit(each, node, found)
    }
  }
}

/** Whether an identifier stands for a value, and not for a property, a label or a declared name. */
function isUse(node, parent) {
  if (parent.type === 'MemberExpression') return parent.computed || parent.object === node
  if (parent.type === 'Property') return parent.value === node && !parent.shorthand
  if (parent.type === 'PropertyDefinition' || parent.type === 'MethodDefinition') return parent.value === node
  if (parent.type === 'VariableDeclarator') return parent.init === node
  return !/Specifier|Declaration|Label|Break|Continue|MetaProperty/.test(parent.type)
}
