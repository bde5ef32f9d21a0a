// Counts in an LMDB file, which all processes of one machine share: a complete backend of `millrace/backend`.
import { open } from 'lmdb'

export function lmdbValues(path) {
  const db = open({ path, encoding: 'binary' })
  return {
    async read(keys) {
      return keys.map((key) => db.get(key))
    },
    swap(key, before, after) {
      return db.transaction(() => {
        const present = db.get(key)
        const isSame = before === undefined ? present === undefined : present?.equals(before)
        if (isSame) db.put(key, after)
        return isSame === true
      })
    },
    close: () => db.close(),
  }
}
