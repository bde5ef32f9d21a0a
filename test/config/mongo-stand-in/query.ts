// Filters, projections and updates, as far as they are known. Everything else is refused by name.
import { type Document, serialize } from 'bson'
import { onlyFields, unknown } from './refusal.js'

type Operator = (value: unknown, operand: unknown) => boolean

const OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: (value, operand) => isEqual(value, operand),
  $ne: (value, operand) => !isEqual(value, operand),
  $in: (value, operand) => arrayOf(operand, '$in').some((each) => isEqual(value, each)),
  $exists: (value, operand) => (value !== undefined) === operand,
  $gt: (value, operand) => isOrdered(value, operand, (order) => order > 0),
  $gte: (value, operand) => isOrdered(value, operand, (order) => order >= 0),
  $lt: (value, operand) => isOrdered(value, operand, (order) => order < 0),
}

export function matches(document: Document, filter: Document): boolean {
  return Object.entries(filter).every(([field, condition]) => {
    checkField(field, 'a filter')
    if (!isPlain(condition)) return OPERATORS.$eq!(document[field], condition)
    const names = Object.keys(condition)
    if (!names.some((name) => name.startsWith('$'))) throw unknown(`a filter of ${field} by an object`)
    onlyFields(condition, Object.keys(OPERATORS), `a filter of ${field}`)
    return names.every((name) => OPERATORS[name]!(document[field], condition[name]))
  })
}

/** The documents in the order of their `_id`: the bytes of the strings. Other sorts are refused. */
export function sorted(documents: Document[], sort: Document): Document[] {
  onlyFields(sort, ['_id'], 'sort')
  if (numberIn(sort._id) !== 1) throw unknown(`sort by _id: ${sort._id}`)
  return documents.sort((a, b) => orderOf(a._id, b._id))
}

export function projected(document: Document, projection: Document): Document {
  for (const [field, value] of Object.entries(projection)) {
    checkField(field, 'a projection')
    if (numberIn(value) !== 1) throw unknown(`a projection of ${field} by ${value}`)
  }
  const names = Object.keys(document).filter((name) => name === '_id' || name in projection)
  return Object.fromEntries(names.map((name) => [name, document[name]]))
}

/** The document after an update: a replacement, or `$set` and `$push`. */
export function updated(document: Document, update: Document): Document {
  if (Array.isArray(update)) throw unknown('an update by a pipeline')
  if (!Object.keys(update).some((name) => name.startsWith('$'))) return { _id: document._id, ...update }
  onlyFields(update, ['$set', '$push'], 'an update')
  const next = { ...document }
  for (const [field, value] of Object.entries(update.$set ?? {})) {
    checkField(field, '$set')
    next[field] = value
  }
  for (const [field, value] of Object.entries((update.$push ?? {}) as Document)) {
    checkField(field, '$push')
    onlyFields(value, ['$each', '$slice'], `$push of ${field}`)
    const slice = numberIn(value.$slice)
    if (slice === undefined || slice >= 0) throw unknown(`$slice: ${value.$slice}`)
    next[field] = [...arrayOf(next[field] ?? [], field), ...arrayOf(value.$each, '$each')].slice(slice)
  }
  return next
}

function checkField(field: string, where: string): void {
  if (field.startsWith('$') || field.includes('.')) throw unknown(`${field} in ${where}`)
}

function arrayOf(value: unknown, where: string): unknown[] {
  if (!Array.isArray(value)) throw unknown(`${where} that is no array`)
  return value
}

/** Numbers are equal by value, whatever their types; null equals what is missing; an array, one of its elements. */
function isEqual(value: unknown, operand: unknown): boolean {
  if (operand === null) return value === null || value === undefined
  if (value === undefined) return false
  const number = numberIn(operand)
  if (number !== undefined && numberIn(value) === number) return true
  if (Buffer.from(serialize({ value })).equals(Buffer.from(serialize({ value: operand })))) return true
  return Array.isArray(value) && value.some((each) => isEqual(each, operand))
}

/** A range of strings has strings only. Of other ranges the stand-in knows nothing. */
function isOrdered(value: unknown, operand: unknown, holds: (order: number) => boolean): boolean {
  if (typeof operand !== 'string') throw unknown(`a range of ${operand}`)
  return typeof value === 'string' && holds(orderOf(value, operand))
}

function orderOf(a: unknown, b: unknown): number {
  if (typeof a !== 'string' || typeof b !== 'string') throw unknown('an order of other values than strings')
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

const isPlain = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

export function numberIn(value: unknown): number | undefined {
  const plain = Object(value)
  if (!['Int32', 'Double', 'Long'].includes(plain._bsontype)) return undefined
  return Number(plain._bsontype === 'Long' ? plain.toBigInt() : plain.valueOf())
}
