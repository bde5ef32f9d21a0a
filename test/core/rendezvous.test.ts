// run: once
// Rendezvous hashing: keys are spread evenly, few of them move, and the formula stays as it is documented.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Rendezvous } from '#millrace/core/rendezvous.js'

const NAMES = ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']
const KEYS = Array.from({ length: 40_000 }, (_, i) => `user:${i}`)

const over = (names: readonly string[]) => new Rendezvous(names.map((name) => [name, name]))

test('servers have equal shares, within a twentieth', () => {
  for (const count of [2, 3, 4]) {
    const shards = over(NAMES.slice(0, count))
    const keys = new Map<string, number>()
    for (const key of KEYS) keys.set(shards.find(key), (keys.get(shards.find(key)) ?? 0) + 1)
    assert.is(keys.size, count)
    for (const share of keys.values())
      assert.ok(Math.abs((share * count) / KEYS.length - 1) < 0.05, `${share} of ${KEYS.length}`)
  }
})

test('a fourth server takes a quarter of the keys, all others stay', () => {
  const [three, four] = [over(NAMES.slice(0, 3)), over(NAMES)]
  const moved = KEYS.filter((key) => three.find(key) !== four.find(key))
  assert.ok(Math.abs((moved.length * 4) / KEYS.length - 1) < 0.05, `${moved.length}`)
  assert.ok(moved.every((key) => four.find(key) === NAMES[3]))
  for (const name of NAMES.slice(0, 3)) {
    const from = moved.filter((key) => three.find(key) === name)
    assert.ok(Math.abs((from.length * 3) / moved.length - 1) < 0.1, `${from.length} of ${moved.length}`)
  }
})

test('the order of the servers makes no difference', () => {
  const [one, other] = [over(NAMES), over([...NAMES].reverse())]
  assert.ok(KEYS.every((key) => one.find(key) === other.find(key)))
})

test('the formula, written again with big integers, gives the same servers', () => {
  const word = (value: bigint) => value & 0xffff_ffffn
  const fnv = (text: string) =>
    [...new TextEncoder().encode(text)].reduce(
      (hash, byte) => word((hash ^ BigInt(byte)) * 0x0100_0193n),
      0x811c_9dc5n,
    )
  const mix = (bits: bigint) => {
    let hash = word((bits ^ (bits >> 16n)) * 0x85eb_ca6bn)
    hash = word((hash ^ (hash >> 13n)) * 0xc2b2_ae35n)
    return hash ^ (hash >> 16n)
  }
  const score = (name: string, tag: string) => mix(mix(fnv(name)) ^ fnv(tag))
  const shards = over(NAMES)
  for (const key of ['', 'a', 'é', '😀', '%7B', ...KEYS.slice(0, 1_000)]) {
    const best = NAMES.reduce((most, name) => (score(name, key) > score(most, key) ? name : most))
    assert.is(shards.find(key), best, key)
  }
})

test('places that other languages must agree with', () => {
  const shards = over(['a', 'b', 'c'])
  const places = ['alice', 'bob', 'carol', 'é', '%7Bx%7D'].map((key) => shards.find(key))
  assert.equal(places, ['c', 'b', 'b', 'b', 'c'])
})

test('ranked: the winner, then that of the others without it, and so on', () => {
  for (const key of KEYS.slice(0, 1_000)) {
    let names = [...NAMES]
    const expected: string[] = []
    while (names.length > 0) {
      const best = over(names).find(key)
      expected.push(best)
      names = names.filter((name) => name !== best)
    }
    assert.equal(over(NAMES).ranked(key, 4), expected)
    assert.equal(over(NAMES).ranked(key, 2), expected.slice(0, 2))
  }
})

test.run()
