// What can be wrong with a piece of code: for each node of a syntax tree, the texts that may stand in its stead.
//
// Chosen so that none says what another does. A condition is taken for true, for false, and each of its parts for what
// leaves the others to decide: so comparisons in it are not turned round, nor && and || swapped, nor branches.
import type { AnyNode, BinaryExpression, LogicalExpression, Node } from 'acorn'

/** One stretch of the code, and what shall stand there. */
export interface Change {
  readonly start: number
  readonly end: number
  readonly replacement: string
}

const INSTEAD: Readonly<Record<string, readonly string[]>> = {
  '<': ['<='],
  '<=': ['<'],
  '>': ['>='],
  '>=': ['>'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '&': ['|'],
  '|': ['&'],
  '^': ['|'],
  '<<': ['>>>'],
  '>>>': ['<<', '>>'],
  '+=': ['-='],
  '-=': ['+='],
  '|=': ['&='],
  '^=': ['|='],
  '++': ['--'],
  '--': ['++'],
}
const METHODS: Readonly<Record<string, string>> = { min: 'max', max: 'min', floor: 'ceil', ceil: 'floor' }
/** Numbers up to this are bounds and offsets, for which one less is another mistake than one more. */
const MOST_LOWERED = 4
const LOOPS = new Set(['ForStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement'])

/** All changes of this very node; `parents` from the program down to the node's own parent. */
export function changesOf(node: AnyNode, parents: readonly AnyNode[], code: string): Change[] {
  const parent = parents.at(-1)
  switch (node.type) {
    case 'BinaryExpression':
      return isCoercion(node) ? [] : operators(node.operator, node.left.end, code)
    case 'LogicalExpression':
      return withoutOperands(node)
    case 'AssignmentExpression':
      return operators(node.operator, node.left.end, code)
    case 'UpdateExpression':
      return operators(node.operator, node.prefix ? node.start : node.argument.end, code)
    case 'UnaryExpression':
      return ['-', '!', '~'].includes(node.operator) ? [instead(node, textOf(node.argument, code))] : []
    case 'Literal':
      return literals(node.value, node, parent)
    case 'IfStatement':
    case 'ConditionalExpression':
    case 'WhileStatement':
      return node.test.type === 'Literal' ? [] : [instead(node.test, 'true'), instead(node.test, 'false')]
    case 'ForStatement':
      return node.test ? [instead(node.test, 'false')] : []
    case 'MemberExpression':
      return methods(node, code)
    case 'ReturnStatement':
      return [...values(node.argument), ...removals(node, parents)]
    case 'ContinueStatement':
    case 'BreakStatement':
      return [...jumps(node, parents), ...removals(node, parents)]
    case 'ExpressionStatement':
    case 'ThrowStatement':
      return removals(node, parents)
    default:
      return []
  }
}

function instead({ start, end }: Node, replacement: string): Change {
  return { start, end, replacement }
}

function textOf({ start, end }: Node, code: string): string {
  return code.slice(start, end)
}

/** `x | 0` and `x >>> 0`: mostly there for the engine and for readers, as atomic operations make words of their own. */
function isCoercion({ operator, right }: BinaryExpression): boolean {
  return (operator === '|' || operator === '>>>') && right.type === 'Literal' && right.value === 0
}

function operators(operator: string, from: number, code: string): Change[] {
  const start = code.indexOf(operator, from)
  return (INSTEAD[operator] ?? []).map((other) => ({
    start,
    end: start + operator.length,
    replacement: other,
  }))
}

function withoutOperands({ operator, left, right }: LogicalExpression): Change[] {
  if (operator === '??') return []
  const neutral = String(operator === '&&')
  return [instead(left, neutral), instead(right, neutral)]
}

function literals(value: unknown, node: AnyNode, parent: AnyNode | undefined): Change[] {
  if (typeof value === 'boolean') return [instead(node, String(!value))]
  if (typeof value !== 'number' || (parent?.type === 'BinaryExpression' && isCoercion(parent))) return []
  const more = instead(node, String(value + 1))
  return value > 0 && value <= MOST_LOWERED ? [more, instead(node, String(value - 1))] : [more]
}

function methods(node: AnyNode & { type: 'MemberExpression' }, code: string): Change[] {
  const other = METHODS[textOf(node.property, code)]
  return textOf(node.object, code) === 'Math' && other ? [instead(node.property, other)] : []
}

function values(argument: AnyNode | null | undefined): Change[] {
  switch (argument?.type) {
    case 'BinaryExpression':
      if (!/[<>=]=|^[<>]$/.test(argument.operator)) return []
      return [instead(argument, 'true'), instead(argument, 'false')]
    case 'LogicalExpression':
      return [instead(argument, 'true'), instead(argument, 'false')]
    case 'CallExpression':
      return [instead(argument, '0')]
    default:
      return []
  }
}

/** Nothing instead of a statement, but where an `if` that is never taken says the same. */
function removals(node: AnyNode, parents: readonly AnyNode[]): Change[] {
  let [holder, owner] = [parents.at(-1), parents.at(-2)]
  if (node.type === 'ReturnStatement' && (holder?.type !== 'BlockStatement' || isFunction(owner))) return []
  if (holder?.type === 'BlockStatement' && holder.body.length === 1) [holder, owner] = [owner, holder]
  const isAllOfIf =
    holder?.type === 'IfStatement' && holder.alternate == null && holder.test !== (node as Node)
  return isAllOfIf ? [] : [instead(node, ';')]
}

function isFunction(node: AnyNode | undefined): boolean {
  return node !== undefined && /Function/.test(node.type)
}

function jumps(node: AnyNode, parents: readonly AnyNode[]): Change[] {
  const out = parents.findLast(({ type }) => type === 'SwitchStatement' || LOOPS.has(type))
  if (out?.type === 'SwitchStatement') return []
  return [instead(node, node.type === 'BreakStatement' ? 'continue;' : 'break;')]
}
