// npm run dev -- NAME [ARGUMENT ...]: a command for one part of the package; `npm run dev -- --list` has them all.
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const built = (file) => ['node', `build/${file}/main.js`]
const memory = (megabytes) => `--max-old-space-size=${megabytes}`

/** For what measures: `millrace` is dist/, as published, also in the processes that the command starts. */
const AS_PUBLISHED = '--conditions=millrace-bundle'

/**
 * By name: what the command does, the build that it needs, options of Node.js for all its processes, and what is run in
 * the package's folder.
 */
export const COMMANDS = {
  'accuracy:page': {
    what: 'writes the tables of accuracy in docs/algorithms.md, and their chart',
    needs: 'dev',
    run: built('bench/accuracy'),
  },
  attack: {
    what: 'random keys, keys made to collide, a table overrun',
    needs: 'dev',
    run: built('test/attack'),
  },
  bench: {
    what: 'benchmarks of decisions, in processes of their own',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench'),
  },
  'bench:config': {
    what: 'benchmarks of configuration stores',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench/config'),
  },
  'bench:http': {
    what: 'benchmarks of HTTP servers',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench/http'),
  },
  'bench:instructions': {
    what: 'instructions of servers for a request, under valgrind',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench/instructions'),
  },
  'bench:redis': {
    what: 'benchmarks of limiters on Redis',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench/redis'),
  },
  'bench:service': {
    what: 'benchmarks of the decision service and its client',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('bench/service'),
  },
  checked: {
    what: 'all checks of the addon, and .ci/checked.json where they pass',
    needs: 'dev',
    run: ['node', 'build/test/parts.js', 'full', '--all', 'sanitizers', 'parity'],
  },
  'demo:picture': {
    what: 'draws the output of the demo as docs/demo.svg',
    needs: 'package',
    run: ['node', 'scripts/draw-demo.mjs'],
  },
  'demo:redis': {
    what: 'four processes with one limit on Redis, and a judge',
    needs: 'dev',
    nodeOptions: AS_PUBLISHED,
    run: built('demo/redis'),
  },
  explore: {
    what: 'plays the built code at every interleaving of up to three preemptions',
    needs: 'dev',
    run: ['node', memory(8_000), 'build/test/explore/main.js'],
  },
  'fuzz:native': {
    what: 'random calls of the addon under AddressSanitizer and UBSan',
    needs: 'dev',
    run: ['node', 'scripts/fuzz-native.mjs'],
  },
  generate: {
    what: 'writes native/constants.h from src/native/constants.ts',
    needs: 'package',
    run: ['node', 'scripts/native-constants.mjs'],
  },
  litmus: {
    what: 'counts which reorderings of reads and writes this machine shows',
    needs: 'dev',
    run: ['node', 'build/test/arm64/litmus.js'],
  },
  model: {
    what: "explores the protocol's model",
    run: ['node', memory(12_000), 'test/model/way-protocol.mjs'],
  },
  parity: {
    what: 'random operations by TypeScript and by the addon: equal answers, equal memory',
    needs: 'dev',
    run: built('test/native'),
  },
  soak: { what: 'full load for a long time', needs: 'dev', run: built('test/soak') },
  stress: {
    what: 'decisions by real threads, each judged',
    needs: 'dev',
    run: built('test/stress/oracle'),
  },
  'stress:addon-workers': {
    what: 'threads that load the addon, start and end',
    needs: 'dev',
    run: built('test/stress/addon-workers'),
  },
  'stress:changes': {
    what: 'threads and pools that decide while the window changes',
    needs: 'dev',
    run: built('test/stress/changes'),
  },
  'stress:config': {
    what: 'kills processes that write to one LMDB file',
    needs: 'dev',
    run: built('test/stress/config'),
  },
  'stress:deaths': {
    what: 'threads that die while others decide',
    needs: 'dev',
    run: built('test/stress/deaths'),
  },
  'stress:pool': {
    what: 'threads of pools that die at any step',
    needs: 'dev',
    run: [
      'node',
      '--import',
      './build/test/stress/pool-deaths/doomed.js',
      'build/test/stress/pool-deaths/main.js',
    ],
  },
  'stress:processes': {
    what: 'processes on one file that are killed and started again',
    needs: 'dev',
    run: built('test/stress/processes'),
  },
  'stress:redis': {
    what: 'limiters on a Redis of its own: real time, random operations, many keys',
    needs: 'dev',
    run: built('test/stress/redis'),
  },
  'test:arm64': { what: 'tests and a stress under QEMU', needs: 'dev', run: ['scripts/arm64.sh'] },
  'test:native': { what: "the addon's protocol in C++ alone", run: ['node', 'scripts/test-native.mjs'] },
  'test:nodes': {
    what: 'the quick tests on every supported Node.js',
    needs: 'dev',
    run: ['node', 'scripts/test-nodes.mjs'],
  },
  'test:runtimes': {
    what: 'the packed package on Node.js, Bun and Deno',
    needs: 'package',
    run: ['node', 'scripts/test-runtimes.mjs'],
  },
  'test:sanitize': {
    what: 'the addon and its C++ test under sanitizers, and faults that they must report',
    needs: 'dev',
    run: ['node', 'scripts/test-sanitize.mjs'],
  },
}

if (process.argv[1] === fileURLToPath(import.meta.url)) start(process.argv.slice(2))

function start([name, ...args]) {
  if (name === '--list') return list(console.log)
  const command = Object.hasOwn(COMMANDS, name ?? '') ? COMMANDS[name] : undefined
  if (command === undefined) {
    console.error(`${name ?? 'no name'}: expected --list, or the name of a command:`)
    list(console.error)
    process.exitCode = 2
    return
  }
  const { needs, nodeOptions = '', run } = command
  if (needs !== undefined) {
    const args = ['scripts/build.mjs', '--if-changed', ...(needs === 'dev' ? ['--dev'] : [])]
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    if (status !== 0) process.exit(status ?? 1)
  }
  const [program, ...options] = run
  const child = spawn(program === 'node' ? process.execPath : program, [...options, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${nodeOptions}`.trim() },
  })
  // The terminal sends Ctrl-C to the child, too. The child decides how both end.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill())
  child.on('error', (error) => {
    throw error
  })
  child.on('close', (code) => {
    process.exitCode = code ?? 1
  })
}

function list(write) {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length))
  for (const [name, { what }] of Object.entries(COMMANDS)) write(`${name.padEnd(width)}  ${what}`)
}
