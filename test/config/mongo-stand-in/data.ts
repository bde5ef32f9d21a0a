// The documents of the stand-in, and the commands that change them.
import type { Document } from 'bson'
import type { History } from './history.js'
import { matches, numberIn, updated } from './query.js'
import { onlyFields, unknown } from './refusal.js'

/** The documents of a collection by `_id`. */
type Documents = Map<string, Document>

interface WriteError {
  readonly index: number
  readonly code: number
  readonly errmsg: string
}

const nameOf = (id: unknown): string => (typeof id === 'string' ? `string ${id}` : `other ${String(id)}`)

export class Data {
  readonly #collections = new Map<string, Documents>()
  readonly #history: History

  constructor(history: History) {
    this.#history = history
  }

  #in(namespace: string): Documents {
    let documents = this.#collections.get(namespace)
    if (documents === undefined) {
      documents = new Map()
      this.#collections.set(namespace, documents)
    }
    return documents
  }

  find(namespace: string, filter: Document): Document[] {
    return [...this.#in(namespace).values()].filter((document) => matches(document, filter))
  }

  insert(namespace: string, { documents }: Document): Document {
    const writeErrors: WriteError[] = []
    for (const [index, document] of documents.entries()) {
      if (document._id === undefined) throw unknown('documents without _id')
      if (this.#in(namespace).has(nameOf(document._id))) {
        writeErrors.push({ index, ...duplicate(namespace, document._id) })
        break // all writes are ordered
      }
      this.#set(namespace, document, 'insert')
    }
    return { n: writeErrors[0]?.index ?? documents.length, writeErrors: writeErrors[0] && writeErrors }
  }

  update(namespace: string, { updates }: Document): Document {
    if (updates.length !== 1) throw unknown('several updates at once')
    const [statement] = updates
    onlyFields(statement, ['q', 'u', 'upsert', 'collation'], 'an update')
    checkCollation(statement.collation)
    const [document] = this.find(namespace, statement.q)
    if (document !== undefined) {
      const isWhole = !Object.keys(statement.u).some((name) => name.startsWith('$'))
      this.#set(namespace, updated(document, statement.u), isWhole ? 'replace' : 'update')
      return { n: 1, nModified: 1 }
    }
    if (statement.upsert !== true) return { n: 0, nModified: 0 }
    const { _id, ...others } = statement.q
    if (typeof _id !== 'string' || Object.keys(others).length > 0) throw unknown('an upsert by more than _id')
    this.#set(namespace, updated({ _id }, statement.u), 'insert')
    return { n: 1, nModified: 0, upserted: [{ index: 0, _id }] }
  }

  delete(namespace: string, { deletes }: Document): Document {
    if (deletes.length !== 1) throw unknown('several deletions at once')
    const [statement] = deletes
    onlyFields(statement, ['q', 'limit', 'collation'], 'a deletion')
    checkCollation(statement.collation)
    if (numberIn(statement.limit) !== 1) throw unknown(`a deletion with limit: ${statement.limit}`)
    const [document] = this.find(namespace, statement.q)
    if (document === undefined) return { n: 0 }
    this.#in(namespace).delete(nameOf(document._id))
    this.#tell(namespace, 'delete', document._id)
    return { n: 1 }
  }

  drop(namespace: string): void {
    if (!this.#collections.delete(namespace)) return
    this.#history.add(namespace, { operationType: 'drop' })
    this.#history.add(namespace, { operationType: 'invalidate' })
  }

  dropDatabase(database: string): void {
    for (const namespace of [...this.#collections.keys()])
      if (namespace.startsWith(`${database}.`)) this.drop(namespace)
  }

  #set(namespace: string, document: Document, operationType: string): void {
    this.#in(namespace).set(nameOf(document._id), document)
    this.#tell(namespace, operationType, document._id)
  }

  #tell(namespace: string, operationType: string, _id: unknown): void {
    this.#history.add(namespace, { operationType, documentKey: { _id } })
  }
}

function duplicate(namespace: string, id: unknown): Omit<WriteError, 'index'> {
  return {
    code: 11_000,
    errmsg: `E11000 duplicate key error collection: ${namespace} index: _id_ dup key: { _id: "${id}" }`,
  }
}

/** Without a collation strings are compared by their bytes, as no collection of the stand-in has one. */
export function checkCollation(collation: Document | undefined): void {
  if (collation === undefined) return
  onlyFields(collation, ['locale'], 'collation')
  if (collation.locale !== 'simple') throw unknown(`the collation ${collation.locale}`)
}
