// `node lmdb-churn.js FILE SEED`: writes to an LMDB file until it is killed. Pages at the end of the file are taken, and
// given back in the same transaction. Says each commit by a line.
import { open } from 'lmdb'
import { random as randomOf } from '../algorithms/random.js'

const [file, seed] = process.argv.slice(2) as [string, string]
const root = open({ path: file, noSubdir: true, overlappingSync: false, eventTurnBatching: false })
const policies = root.openDB<string, string>({ name: 'policies', encoding: 'string' })
const random = randomOf(Number(seed))
const below = (end: number): number => Math.floor(random() * end)

for (;;) {
  const most = below(4) === 0 ? 30_000 : 300
  const keys = Array.from({ length: 1 + below(200) }, () => `churn:${below(3_000)}`)
  const isKept = [() => true, () => false, () => below(2) === 0][below(3)]!
  await root.childTransaction(() => {
    for (const key of keys) policies.put(key, 'x'.repeat(below(most)))
    for (const key of keys) if (!isKept()) policies.remove(key)
  })
  process.stdout.write('committed\n')
}
