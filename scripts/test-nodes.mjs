// npm run dev -- test:nodes: runs the quick tests on every supported Node. `-- 22 24` selects versions, `-- 22
// memory` also selects files by their path, and `-- --one` selects the newest version but the one that runs this.
// Each version is downloaded from npm once, into .cache/nodes/. The last line is `N passed, N failed, N
// skipped`, which scripts can parse.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const VERSIONS = ['20.19', '22', '24', '26']

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { one: { type: 'boolean', default: false } },
})

const versions = positionals.filter((text) => /^\d/.test(text))
const patterns = positionals.filter((text) => !versions.includes(text))
const totals = [0, 0, 0]
const broken = []
for (const version of selectedVersions()) {
  const node = binaryOf(version)
  const name = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
  console.log(`Node ${name}`)
  const counts = await runTests(node)
  if (counts === undefined || counts[1] > 0) broken.push(name)
  for (const [i, count] of (counts ?? [0, 1, 0]).entries()) totals[i] += count
}
if (broken.length > 0) console.log(`failed on ${broken.join(', ')}`)
console.log(`${totals[0]} passed, ${totals[1]} failed, ${totals[2]} skipped`)
process.exitCode = broken.length > 0 ? 1 : 0

function selectedVersions() {
  if (versions.length > 0) return versions
  if (!values.one) return VERSIONS
  const others = VERSIONS.filter((version) => !`${process.versions.node}.`.startsWith(`${version}.`))
  return others.slice(-1)
}

/** The path of a version's binary, downloaded if necessary. */
function binaryOf(version) {
  const folder = join(root, '.cache', 'nodes', version)
  const system = process.platform === 'win32' ? 'win' : process.platform
  const name = `node-${system}-${process.arch}`
  const bin = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(bin)) return bin
  const args = ['install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts']
  const command = ['npm', ...args, '--prefix', folder, `${name}@${version}`]
  const { status } = spawnSync(command[0], command.slice(1), {
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0 || !existsSync(bin)) throw new Error(`${command.join(' ')} has not brought ${bin}`)
  return bin
}

/** The numbers of passed, failed and skipped tests; undefined if the run did not complete. */
function runTests(node) {
  const path = `${join(node, '..')}${delimiter}${process.env.PATH}`
  const child = spawn(node, ['build/test/run.js', ...patterns], {
    cwd: root,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
    process.stdout.write(chunk)
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      const found = /(\d+) passed, (\d+) failed, (\d+) skipped\s*$/.exec(output)
      const counts = found?.slice(1).map(Number)
      resolve(code === 0 || counts?.[1] > 0 ? counts : undefined)
    })
  })
}
