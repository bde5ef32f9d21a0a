// The server of tests on MongoDB: the one that MONGODB_URL names, else the stand-in.
import { MongoClient } from 'mongodb'
import { StandIn } from './mongo-stand-in/stand-in.js'

/** Where tests run. */
export interface TestServer {
  readonly name: string
  readonly url: string
  /** Ends it, and fails if it had to refuse something that it does not know. */
  stop(): Promise<void>
}

/** Says which server the tests are run on. */
export async function startServers(): Promise<TestServer[]> {
  const url = process.env.MONGODB_URL
  if (url === undefined) {
    console.log('note: mongodb: the stand-in, not a MongoDB server (set MONGODB_URL)')
    return Promise.all([startStandIn('replica set'), startStandIn('standalone')])
  }
  const client = new MongoClient(url)
  try {
    const admin = client.db('admin')
    const { version } = await admin.command({ buildInfo: 1 })
    const { setName, msg } = await admin.command({ hello: 1 })
    const kind = msg === 'isdbgrid' ? 'mongos' : setName === undefined ? 'standalone' : 'replica set'
    console.log(`note: mongodb: a MongoDB server ${version}, ${kind}, by MONGODB_URL`)
    return [{ name: kind, url, stop: async () => {} }]
  } finally {
    await client.close()
  }
}

async function startStandIn(kind: 'replica set' | 'standalone'): Promise<TestServer> {
  const standIn = await StandIn.start(kind)
  return {
    name: `stand-in, ${kind}`,
    url: standIn.url,
    async stop() {
      await standIn.stop()
      if (standIn.refused.length > 0) throw new Error(standIn.refused.join('\n'))
    },
  }
}

/** What writers beside the store use. */
export const MAJORITY = { writeConcern: { w: 'majority', journal: true } } as const
