// The commands that the stand-in knows, each with the fields that it knows.
import { type Document, Long, ObjectId } from 'bson'
import { checkCollation, type Data } from './data.js'
import { type History, StreamCursor } from './history.js'
import { numberIn, projected, sorted } from './query.js'
import { onlyFields, Refusal, unknown } from './refusal.js'

export type Kind = 'replica set' | 'standalone'

/** What commands work on. */
export interface Place {
  readonly kind: Kind
  readonly address: string
  readonly data: Data
  readonly history: History
  readonly streams: Map<string, StreamCursor>
  /** The replies to writes, by session and number: a repeated one is not made again. */
  readonly replies: Map<string, Document>
}

type Run = (place: Place, command: Document, namespace: string) => Document | Promise<Document>

interface Command {
  readonly fields: readonly string[]
  readonly isWrite?: true
  readonly run: Run
}

/** Fields that each command may have. */
const COMMON = ['$db', 'lsid', 'maxTimeMS']
const WRITE = ['writeConcern', 'txnNumber', 'ordered']
const HELLO = ['helloOk', 'backpressure', 'client', 'compression', 'topologyVersion', 'maxAwaitTimeMS']
/** Of a server of version 7.0. */
const WIRE_VERSION = 21
const BATCH = 101
const PROCESS = new ObjectId()

const COMMANDS: Readonly<Record<string, Command>> = {
  hello: { fields: HELLO, run: hello },
  ismaster: { fields: HELLO, run: hello },
  ping: { fields: [], run: () => ({}) },
  endSessions: { fields: ['writeConcern', '$readPreference'], run: () => ({}) },
  find: {
    fields: ['filter', 'sort', 'projection', 'limit', 'singleBatch', 'batchSize', 'collation', 'readConcern'],
    run: find,
  },
  insert: {
    fields: [...WRITE, 'documents'],
    isWrite: true,
    run: ({ data }, command, namespace) => data.insert(namespace, command),
  },
  update: {
    fields: [...WRITE, 'updates'],
    isWrite: true,
    run: ({ data }, command, namespace) => data.update(namespace, command),
  },
  delete: {
    fields: [...WRITE, 'deletes'],
    isWrite: true,
    run: ({ data }, command, namespace) => data.delete(namespace, command),
  },
  drop: {
    fields: ['writeConcern'],
    isWrite: true,
    run: ({ data }, _, namespace) => {
      data.drop(namespace)
      return {}
    },
  },
  dropDatabase: {
    fields: ['writeConcern'],
    isWrite: true,
    run: ({ data }, { $db }) => {
      data.dropDatabase($db)
      return {}
    },
  },
  aggregate: { fields: ['pipeline', 'cursor', 'collation', 'readConcern'], run: aggregate },
  getMore: { fields: ['collection', 'batchSize'], run: getMore },
  killCursors: { fields: ['cursors'], run: killCursors },
}

/** Runs a command. It rejects with a `Refusal`. */
export async function runCommand(place: Place, command: Document): Promise<Document> {
  const name = Object.keys(command)[0]!
  const known = COMMANDS[name]
  if (known === undefined)
    throw new Refusal(59, 'CommandNotFound', `the stand-in does not know the command ${name}`)
  onlyFields(command, [name, ...COMMON, ...known.fields], name)
  const namespace = `${command.$db}.${command[name]}`
  if (known.isWrite === undefined) return known.run(place, command, namespace)
  checkWriteConcern(command.writeConcern)
  if (command.ordered === false) throw unknown('ordered: false')
  if (command.txnNumber === undefined) return known.run(place, command, namespace)
  if (place.kind === 'standalone') {
    const message = 'Transaction numbers are only allowed on a replica set member or mongos'
    throw new Refusal(20, 'IllegalOperation', message)
  }
  const write = `${command.lsid.id.toString('hex')} ${command.txnNumber}`
  const reply = place.replies.get(write) ?? (await known.run(place, command, namespace))
  place.replies.set(write, reply)
  return reply
}

/** Only what makes a write last: the majority has it in its journal. */
function checkWriteConcern(concern: Document | undefined): void {
  if (concern == null) throw unknown('a write without writeConcern')
  onlyFields(concern, ['w', 'j', 'wtimeout'], 'writeConcern')
  if (concern.w !== 'majority' || concern.j !== true)
    throw unknown(`the write concern ${JSON.stringify(concern)}`)
}

function checkReadConcern({ kind }: Place, concern: Document | undefined): void {
  onlyFields(concern ?? {}, ['level'], 'readConcern')
  const level = kind === 'standalone' ? 'local' : 'majority'
  if (concern?.level !== level) throw unknown(`the read concern ${concern?.level} of a ${kind}`)
}

function hello({ kind, address }: Place): Document {
  const set = {
    setName: 'rs0',
    setVersion: 1,
    secondary: false,
    hosts: [address],
    primary: address,
    me: address,
  }
  return {
    helloOk: true,
    isWritablePrimary: true,
    ismaster: true,
    ...(kind === 'replica set' && set),
    topologyVersion: { processId: PROCESS, counter: Long.ZERO },
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    minWireVersion: 0,
    maxWireVersion: WIRE_VERSION,
    readOnly: false,
  }
}

function find(place: Place, command: Document, namespace: string): Document {
  checkReadConcern(place, command.readConcern)
  checkCollation(command.collation)
  let found = place.data.find(namespace, command.filter)
  if (command.sort !== undefined) found = sorted(found, command.sort)
  const limit = numberIn(command.limit) ?? 0
  if (limit > 0) found = found.slice(0, limit)
  const { projection } = command
  if (projection !== undefined) found = found.map((document) => projected(document, projection))
  if (found.length > (numberIn(command.batchSize) ?? BATCH)) throw unknown('a find in several batches')
  return { cursor: { id: Long.ZERO, ns: namespace, firstBatch: found } }
}

function aggregate(place: Place, command: Document, namespace: string): Document {
  return command.pipeline[0]?.$match === undefined
    ? openStream(place, command, namespace)
    : count(place, command, namespace)
}

/** What `countDocuments` of the driver sends. */
function count(place: Place, command: Document, namespace: string): Document {
  const [first, group, ...others] = command.pipeline as Document[]
  onlyFields(first!, ['$match'], 'a stage')
  const { _id, n } = group?.$group ?? {}
  onlyFields(group ?? {}, ['$group'], 'a stage')
  onlyFields(group?.$group ?? {}, ['_id', 'n'], '$group')
  onlyFields(n ?? {}, ['$sum'], '$group')
  if (numberIn(_id) !== 1 || numberIn(n?.$sum) !== 1 || others.length > 0)
    throw unknown('$match with other stages than the $group that counts')
  checkReadConcern(place, command.readConcern)
  checkCollation(command.collation)
  onlyFields(command.cursor, [], 'cursor')
  const found = place.data.find(namespace, first!.$match)
  return {
    cursor: { id: Long.ZERO, ns: namespace, firstBatch: found.length > 0 ? [{ _id, n: found.length }] : [] },
  }
}

function openStream(place: Place, command: Document, namespace: string): Document {
  const [first, project, ...others] = command.pipeline as Document[]
  if (first?.$changeStream === undefined) throw unknown('an aggregation without $changeStream or $match')
  if (command.collation !== undefined) throw unknown('a change stream with a collation')
  if (place.kind === 'standalone') {
    const message = 'The $changeStream stage is only supported on replica sets'
    throw new Refusal(40_573, 'Location40573', message)
  }
  checkReadConcern(place, command.readConcern)
  onlyFields(first, ['$changeStream'], 'a stage')
  onlyFields(first.$changeStream, ['resumeAfter'], '$changeStream')
  onlyFields(command.cursor, [], 'cursor')
  if (project === undefined || others.length > 0)
    throw unknown('a change stream with other stages than $project')
  onlyFields(project, ['$project'], 'a stage')
  const { resumeAfter } = first.$changeStream
  const at = resumeAfter === undefined ? place.history.at : place.history.after(resumeAfter)
  const cursor = new StreamCursor(place.history, namespace, at, (event) => projected(event, project.$project))
  place.streams.set(String(cursor.id), cursor)
  const { events, token } = cursor.batch()
  return {
    cursor: { id: idOf(cursor), ns: namespace, firstBatch: events, postBatchResumeToken: token },
  }
}

const idOf = ({ isOver, id }: StreamCursor): Long => (isOver ? Long.ZERO : id)

async function getMore({ streams }: Place, command: Document): Promise<Document> {
  const cursor = streams.get(String(command.getMore))
  if (cursor === undefined || cursor.namespace !== `${command.$db}.${command.collection}`)
    throw new Refusal(43, 'CursorNotFound', `cursor id ${command.getMore} not found`)
  const waitMs = numberIn(command.maxTimeMS)
  if (waitMs === undefined) throw unknown('a getMore of a change stream without maxTimeMS')
  const { events, token } = await cursor.next(waitMs)
  if (cursor.isOver) streams.delete(String(cursor.id))
  return {
    cursor: { id: idOf(cursor), ns: cursor.namespace, nextBatch: events, postBatchResumeToken: token },
  }
}

function killCursors({ streams, history }: Place, { cursors }: Document): Document {
  const [killed, lost] = [[] as Long[], [] as Long[]]
  for (const id of cursors as Long[]) {
    const cursor = streams.get(String(id))
    if (cursor !== undefined) cursor.isKilled = true
    ;(streams.delete(String(id)) ? killed : lost).push(id)
  }
  history.wake()
  return { cursorsKilled: killed, cursorsNotFound: lost, cursorsAlive: [], cursorsUnknown: [] }
}
