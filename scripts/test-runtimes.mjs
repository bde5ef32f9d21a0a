// `npm run dev -- test:runtimes`: runs test/runtimes/program.mjs on Node.js, Bun and Deno, in a project with the
// packed package and the runtimes installed from npm. Linux on x64 only.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-runtimes-'))
const MOST_MS = 120_000

function run(command, args, cwd, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'inherit',
    timeout: MOST_MS,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`, { cause: error })
}

try {
  run('npm', ['pack', '--silent', '--pack-destination', folder], root)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz'))
  run('npm', ['install', '--silent', `./${tarball}`, '@oven/bun-linux-x64@1', 'deno@2'], folder)
  cpSync(join(root, 'test/runtimes'), folder, { recursive: true })
  const modules = join(folder, 'node_modules')
  const runtimes = [
    { name: 'Node.js', command: [process.execPath], closesPools: true },
    { name: 'Bun', command: [join(modules, '@oven/bun-linux-x64/bin/bun')], closesPools: true },
    // close() of a pool does not resolve on Deno.
    { name: 'Deno', command: [join(modules, '@deno/linux-x64-glibc/deno'), 'run', '--allow-all'] },
  ]
  for (const { name, command, closesPools } of runtimes) {
    const others = runtimes.map((other) => other.command).filter((other) => other !== command)
    for (const native of ['0', '1']) {
      console.log(`${name}${native === '0' ? ', without the addon' : ''}:`)
      const env = { MILLRACE_NATIVE: native, RUNTIMES: JSON.stringify({ command, others, closesPools }) }
      const [program, ...args] = command
      run(program, [...args, 'program.mjs'], folder, env)
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}
