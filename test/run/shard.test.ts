// run: typescript
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FULL, LONG } from './parts.js'
import { ofShard, partsOfShard, readShard } from './shard.js'

const shardsOf = (count: number) => Array.from({ length: count }, (_, i) => ({ number: i + 1, count }))

test('all shards together have each entry once', () => {
  const list = Array.from({ length: 101 }, (_, i) => i)
  for (const count of [1, 2, 3, 200]) {
    const parts = shardsOf(count).flatMap((shard) => ofShard(list, shard))
    assert.equal(
      parts.toSorted((a, b) => a - b),
      list,
    )
  }
})

test('a part that runs test files is in each shard, each other part in one', () => {
  for (const parts of [FULL, LONG]) {
    for (const count of [1, 2, 3]) {
      const found = shardsOf(count).map((shard) => partsOfShard(parts, shard))
      for (const { name, args } of parts) {
        const places = found.flatMap((shard) => shard.filter((part) => part.name === name))
        const isOfFiles = args[0]!.endsWith('test/run.js')
        assert.is(places.length, isOfFiles ? count : 1, name)
        if (isOfFiles && count > 1)
          assert.equal(
            places.map((part) => part.args.slice(-2)),
            shardsOf(count).map(({ number }) => ['--shard', `${number}/${count}`]),
          )
        else assert.equal(places[0]!.args, args)
      }
    }
  }
})

test('two shards of the full tests take about equally long', () => {
  const [first, second] = shardsOf(2).map((shard) =>
    partsOfShard(FULL, shard).reduce((sum, { budgetSeconds }) => sum + budgetSeconds, 0),
  )
  assert.ok(Math.abs(first! - second!) < 60, `${first} and ${second}`)
})

test('a shard that does not exist is refused', () => {
  assert.equal(readShard('2/3'), { number: 2, count: 3 })
  for (const text of ['', '0/2', '3/2', '1', 'a/b', '-1/2', '1/2/3', '1.5/2'])
    assert.throws(() => readShard(text), /--shard: expected a shard such as 1\/2/)
})

test.run()
