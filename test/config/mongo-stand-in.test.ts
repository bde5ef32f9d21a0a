// The stand-in for MongoDB refuses what it does not know, so that no test passes by it that a server would fail.
import { type Document, Long, MongoClient, MongoServerError } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Kind, StandIn } from './mongo-stand-in/stand-in.js'

const MAJORITY = { w: 'majority', j: true }
const SIMPLE = { locale: 'simple' }

const standIns = new Map<Kind, StandIn>()
const clients = new Map<Kind, MongoClient>()

test.before(async () => {
  for (const kind of ['replica set', 'standalone'] as const) {
    const standIn = await StandIn.start(kind)
    standIns.set(kind, standIn)
    clients.set(kind, new MongoClient(standIn.url))
  }
})

test.after(async () => {
  for (const client of clients.values()) await client.close()
  for (const standIn of standIns.values()) await standIn.stop()
})

const ask = (command: Document, kind: Kind = 'replica set'): Promise<Document> =>
  clients.get(kind)!.db('test').command(command)

async function refuses(command: Document, text: RegExp, kind?: Kind): Promise<void> {
  try {
    await ask(command, kind)
  } catch (error) {
    assert.instance(error, MongoServerError)
    assert.match((error as Error).message, text)
    return
  }
  assert.unreachable(`not refused: ${JSON.stringify(command)}`)
}

const find = (more: Document): Document => ({
  find: 'c',
  filter: {},
  readConcern: { level: 'majority' },
  ...more,
})
const insert = (more: Document): Document => ({
  insert: 'c',
  documents: [{ _id: 'x' }],
  writeConcern: MAJORITY,
  ...more,
})
const update = (statement: Document): Document => ({
  update: 'c',
  updates: [{ q: { _id: 'a' }, u: { $set: { x: 1 } }, ...statement }],
  writeConcern: MAJORITY,
})
const remove = (statement: Document): Document => ({
  delete: 'c',
  deletes: [{ q: {}, limit: 1, ...statement }],
  writeConcern: MAJORITY,
})
const stream = (...pipeline: Document[]): Document => ({
  aggregate: 'c',
  pipeline,
  cursor: {},
  readConcern: { level: 'majority' },
})

const COUNTED = { $group: { _id: 1, n: { $sum: 1 } } }

test('unknown commands and fields', async () => {
  await refuses({ buildInfo: 1 }, /command buildInfo/)
  await refuses({ count: 'c' }, /command count/)
  await refuses(find({ hint: '_id_' }), /hint in find/)
  await refuses(find({ skip: 1 }), /skip in find/)
  await refuses(insert({ bypassDocumentValidation: true }), /bypassDocumentValidation in insert/)
  await refuses(update({ multi: true }), /multi in an update/)
  await refuses(remove({ hint: '_id_' }), /hint in a deletion/)
})

test('unknown operators', async () => {
  await ask(insert({ documents: [{ _id: 'a', n: 1, deep: { n: 1 } }] }))
  await refuses(find({ filter: { _id: { $regex: 'a' } } }), /\$regex in a filter of _id/)
  await refuses(find({ filter: { $or: [] } }), /\$or in a filter/)
  await refuses(find({ filter: { 'deep.n': 1 } }), /deep\.n in a filter/)
  await refuses(find({ filter: { deep: { n: 1 } } }), /deep by an object/)
  await refuses(find({ filter: { n: { $gt: 1 } } }), /a range of 1/)
  await refuses(find({ projection: { n: 0 } }), /a projection of n/)
  await refuses(find({ sort: { n: 1 } }), /n in sort/)
  await refuses(find({ sort: { _id: -1 } }), /sort by _id: -1/)
  await refuses(update({ u: { $inc: { n: 1 } } }), /\$inc in an update/)
  await refuses(update({ u: [{ $set: { n: 1 } }] }), /a pipeline/)
  await refuses(update({ u: { $push: { list: 1 } } }), /\$push/)
  await refuses(remove({ limit: 0 }), /limit: 0/)
  await refuses(stream({ $project: { n: 1 } }), /without \$changeStream/)
  await refuses(stream({ $match: {} }), /\$match with other stages/)
  await refuses(stream({ $match: {} }, { $group: { _id: 1, n: { $sum: 2 } } }), /\$match with other stages/)
  await refuses(stream({ $match: {} }, { $group: { _id: '$n', n: { $sum: 1 } } }), /\$match with other/)
  await refuses(stream({ $match: {} }, { $group: { _id: 1, n: { $avg: 1 } } }), /\$avg in \$group/)
  await refuses(stream({ $match: {} }, COUNTED, { $limit: 1 }), /\$match with other stages/)
  await refuses(stream({ $match: { _id: { $regex: 'a' } } }, COUNTED), /\$regex in a filter/)
  await refuses(stream({ $changeStream: {} }, { $match: {} }), /\$match in a stage/)
  await refuses(stream({ $changeStream: { fullDocument: 'updateLookup' } }), /fullDocument in \$changeStream/)
})

test('other concerns and collations than those that the store needs', async () => {
  await refuses({ insert: 'c', documents: [] }, /without writeConcern/)
  await refuses(insert({ writeConcern: { w: 1 } }), /write concern/)
  await refuses(insert({ writeConcern: { w: 'majority' } }), /write concern/)
  await refuses(insert({ writeConcern: { ...MAJORITY, fsync: true } }), /fsync in writeConcern/)
  await refuses({ find: 'c', filter: {} }, /read concern undefined/)
  await refuses(find({ readConcern: { level: 'local' } }), /read concern local of a replica set/)
  await refuses(find({}), /read concern majority of a standalone/, 'standalone')
  await refuses(find({ collation: { locale: 'en' } }), /collation en/)
  await refuses({ ...stream({ $match: {} }, COUNTED), collation: { locale: 'en' } }, /collation en/)
  await refuses(stream({ $match: {} }, COUNTED), /read concern majority of a standalone/, 'standalone')
  await refuses({ ...stream({ $changeStream: {} }), collation: SIMPLE }, /a change stream with a collation/)
  await refuses(find({ collation: { ...SIMPLE, strength: 1 } }), /strength in collation/)
  await refuses(insert({ ordered: false }), /ordered: false/)
})

test('a standalone has no change streams and no numbered writes', async () => {
  await refuses(
    { ...stream({ $changeStream: {} }), readConcern: { level: 'local' } },
    /only supported on replica/,
    'standalone',
  )
  const client = clients.get('standalone')!
  const numbered = { ...insert({}), txnNumber: Long.ONE }
  try {
    await client.withSession((session) => client.db('test').command(numbered, { session }))
    assert.unreachable()
  } catch (error) {
    assert.match((error as Error).message, /only allowed on a replica set member/)
  }
})

test('what was refused is kept, so that a test can fail by it', async () => {
  const { refused } = standIns.get('replica set')!
  const before = refused.length
  await refuses({ explain: {} }, /explain/)
  assert.is(refused.length, before + 1)
})

test('a duplicate, a filter that fits nothing, an order by bytes', async () => {
  await ask(insert({ insert: 'd', documents: ['é', 'z', '\u{1f600}', '\u{ffee}'].map((_id) => ({ _id })) }))
  const { writeErrors } = await ask(insert({ insert: 'd', documents: [{ _id: 'z' }] }))
  assert.is(writeErrors[0].code, 11_000)
  assert.is((await ask({ ...remove({ q: { _id: 'none' } }), delete: 'd' })).n, 0)
  const { cursor } = await ask(find({ find: 'd', sort: { _id: 1 }, collation: SIMPLE }))
  assert.equal(
    cursor.firstBatch.map(({ _id }: Document) => _id),
    ['z', 'é', '\u{ffee}', '\u{1f600}'],
  )
})

test.run()
