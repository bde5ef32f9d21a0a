/** A command of `npm run test:full` or `npm run test:long`, with a time budget. */
export interface Part {
  readonly name: string
  /** The arguments of node, run in the package's folder. */
  readonly args: readonly string[]
  /** Variables of the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** The duration on two idle processors. After six times as long the part is killed. */
  readonly budgetSeconds: number
  /** No other part runs at the same time. */
  readonly isAlone?: boolean
  /** A check of the addon: what runs in its place if all such checks have passed on the same sources. */
  readonly share?: Pick<Part, 'args' | 'budgetSeconds'>
}

const tests = 'build/test'
/** Tests of what differs between versions of Node.js: threads, atomics, addons, files, loading. */
const OF_NODE = [
  '^engines',
  '^native',
  '^shared-file',
  '^memory',
  '^core',
  '^limiter/wait',
  '^package/r',
  '^examples',
]
const POOL_DEATHS = ['--import', `./${tests}/stress/pool-deaths/doomed.js`]

/** The full tests: a quarter of an hour together. */
export const FULL: readonly Part[] = [
  { name: 'tests', args: [`${tests}/run.js`, '--full'], budgetSeconds: 480, isAlone: true },
  { name: 'nodes', args: ['scripts/test-nodes.mjs', '--one', ...OF_NODE], budgetSeconds: 60, isAlone: true },
  { name: 'native', args: ['scripts/test-native.mjs'], budgetSeconds: 30 },
  { name: 'runtimes', args: ['scripts/test-runtimes.mjs'], budgetSeconds: 60 },
  {
    name: 'sanitizers',
    args: ['scripts/test-sanitize.mjs'],
    budgetSeconds: 240,
    isAlone: true,
    share: { args: ['scripts/test-sanitize.mjs', '--share'], budgetSeconds: 180 },
  },
  {
    name: 'parity',
    args: [`${tests}/native/main.js`, '--operations', '1000000'],
    budgetSeconds: 20,
    share: { args: [`${tests}/native/main.js`, '--operations', '100000', '--seed', '1'], budgetSeconds: 10 },
  },
  {
    name: 'attack',
    args: [
      `${tests}/attack/main.js`,
      '--keys',
      '300000',
      '--colliding',
      '50000',
      '--windows',
      '100',
      '--seed',
      '1',
    ],
    budgetSeconds: 40,
  },
  {
    name: 'soak',
    args: [`${tests}/soak/main.js`, '--minutes', '0.5', '--keys', '20000', '--seed', '1'],
    budgetSeconds: 40,
    isAlone: true,
  },
]

/** The parts, with the shares of those that have one if the checks of the addon have passed before. */
export function sizesFor(parts: readonly Part[], isChecked: boolean): readonly Part[] {
  return isChecked ? parts.map((part) => (part.share ? { ...part, ...part.share } : part)) : parts
}

const HOUR = 3_600

/** The long tests, which take hours. */
export const LONG: readonly Part[] = [
  {
    name: 'tests',
    args: [`${tests}/run.js`, '--long', '^(?!mutants|explore|model)'],
    budgetSeconds: 900,
    isAlone: true,
  },
  { name: 'mutants', args: [`${tests}/run.js`, '--long', '^mutants'], budgetSeconds: 600, isAlone: true },
  {
    name: 'scenarios',
    args: [`${tests}/run.js`, '--long', '^explore', '^model'],
    budgetSeconds: 900,
    isAlone: true,
  },
  { name: 'sanitizers', args: ['scripts/test-sanitize.mjs', '--whole'], budgetSeconds: 900, isAlone: true },
  {
    name: 'model',
    args: ['--max-old-space-size=12000', 'test/model/way-protocol.mjs'],
    budgetSeconds: 2.5 * HOUR,
  },
  { name: 'leases', args: ['test/model/leases/main.mjs', '--runs', '1000000'], budgetSeconds: HOUR },
  { name: 'broken-model', args: ['test/model/way-protocol.mjs', '--broken'], budgetSeconds: 480 },
  {
    name: 'explore',
    args: ['--max-old-space-size=8000', `${tests}/explore/main.js`],
    budgetSeconds: HOUR,
  },
  { name: 'stress', args: [`${tests}/stress/oracle/main.js`], budgetSeconds: 0.5 * HOUR, isAlone: true },
  { name: 'changes', args: [`${tests}/stress/changes/main.js`], budgetSeconds: 0.5 * HOUR, isAlone: true },
  { name: 'deaths', args: [`${tests}/stress/deaths/main.js`], budgetSeconds: 0.5 * HOUR, isAlone: true },
  {
    name: 'pool-deaths',
    args: [...POOL_DEATHS, `${tests}/stress/pool-deaths/main.js`],
    budgetSeconds: 0.5 * HOUR,
    isAlone: true,
  },
  {
    name: 'addon-workers',
    args: [`${tests}/stress/addon-workers/main.js`],
    budgetSeconds: 600,
    isAlone: true,
  },
  { name: 'processes', args: [`${tests}/stress/processes/main.js`], budgetSeconds: 120, isAlone: true },
  {
    name: 'redis',
    args: [
      `${tests}/stress/redis/main.js`,
      '--minutes',
      '10',
      '--operations',
      '1000000',
      '--keys',
      '1000000',
    ],
    budgetSeconds: 900,
    isAlone: true,
  },
  {
    name: 'valkey',
    args: [`${tests}/run.js`, '--full', '^redis/'],
    env: { MILLRACE_REDIS_SERVER: 'valkey-server' }, // scripts/install-valkey.sh installs it
    budgetSeconds: 300,
    isAlone: true,
  },
  { name: 'parity', args: [`${tests}/native/main.js`], budgetSeconds: 300 },
  { name: 'attack', args: [`${tests}/attack/main.js`], budgetSeconds: 600 },
  { name: 'fuzz', args: ['scripts/fuzz-native.mjs', '--minutes', '10'], budgetSeconds: 700 },
  { name: 'nodes', args: ['scripts/test-nodes.mjs'], budgetSeconds: 600, isAlone: true },
  { name: 'runtimes', args: ['scripts/test-runtimes.mjs'], budgetSeconds: 120 },
  {
    name: 'soak',
    args: [`${tests}/soak/main.js`, '--minutes', '60'],
    budgetSeconds: 1.1 * HOUR,
    isAlone: true,
  },
]
