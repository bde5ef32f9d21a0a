// `npm run dev -- litmus`: counts how often two threads observe an outcome that no interleaving of their programs
// produces. It shows which plain accesses a real or emulated machine reorders, and that it reorders no atomic
// ones.
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import type { Observed } from './rounds.js'
import { SHAPES } from './shapes.js'
import { watch } from './watch.js'

await main()

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '1000000' },
      seconds: { type: 'string', default: '20' },
    },
  })
  const [most, seconds] = [Number(values.rounds), Number(values.seconds)]
  if (!(most > 0 && seconds > 0)) {
    console.error('error: --rounds and --seconds must be numbers above 0')
    process.exit(2)
  }
  const observed: Observed[] = []
  for (const [i, shape] of SHAPES.entries()) {
    const found = await watch(i, { rounds: most, seconds })
    observed.push(found)
    process.stderr.write(
      `${i + 1} of ${SHAPES.length}, ${shape.name}: ${found.reordered} of ${found.rounds}\n`,
    )
  }
  const table = new Table({
    head: [`${process.arch}, Node ${process.version}`, 'rounds', 'reordered', 'allowed'],
    colAligns: ['left', 'right', 'right', 'left'],
    style: { head: [], border: [], compact: true },
  })
  SHAPES.forEach(({ name, allowed }, i) => {
    const { rounds, reordered } = observed[i]!
    table.push([name, grouped(rounds), grouped(reordered), allowed ? 'yes' : 'no'])
  })
  console.log(table.toString())
  const forbidden = SHAPES.filter(({ allowed }, i) => !allowed && observed[i]!.reordered > 0)
  const rounds = observed.reduce((sum, { rounds }) => sum + rounds, 0)
  const verdict = forbidden.length === 0 ? 'Held' : `BROKEN (${forbidden.map(({ name }) => name).join('; ')})`
  console.log(
    `${verdict}: ${grouped(rounds)} rounds of ${SHAPES.length} litmus tests on ${process.arch}, at most ${seconds} s each`,
  )
  process.exitCode = forbidden.length === 0 ? 0 : 1
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
