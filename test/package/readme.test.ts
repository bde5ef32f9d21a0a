// run: full
// Every js block of the README, the tutorial and the how-to pages is a program that runs as it stands, with
// the built package.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../native/sides.js'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { blocks, runModule } from './blocks.js'
import { readText, root } from './root.js'

const readme = readText('README.md')
/** Where a block that needs Redis expects a server. */
const REDIS_URL = 'redis://127.0.0.1:6379'
/** How the server of the README's first block listens, for ever. */
const LISTENS = 'app.listen(3000)'
/** In place of that: asks itself 101 times, and ends. */
const ASKS_ITSELF = `const server = app.listen(0, '127.0.0.1', async () => {
  const url = 'http://127.0.0.1:' + server.address().port
  const answers = []
  for (let i = 0; i < 101; i++) {
    const { status, headers } = await fetch(url)
    answers.push([status, headers.has('RateLimit'), headers.has('Retry-After')])
  }
  console.log(JSON.stringify(answers))
  server.close()
  server.closeAllConnections()
})`

test('the README is short: its first screen installs and limits, five doors lead on, three rows compare', () => {
  assert.ok(readme.trimEnd().split('\n').length < 120)
  const [start = '', why = ''] = readme.split(/^## /m)
  assert.match(start, /```sh\n[\s\S]*```js\n(?:.+\n){6}```\n\n!\[/)
  assert.match(why, /^Why\n/)
  assert.is(why.match(/^\| [^|-]/gm)?.length, 3)
  assert.is(/^## Where to go\n([\s\S]*?)^## /m.exec(readme)?.[1]?.match(/^- /gm)?.length, 5)
})

test('the first block of the README limits a server: 100 answers, then 429 with its fields', async () => {
  const { code } = blocks.find(({ page }) => page === 'README.md')!
  assert.match(code, LISTENS)
  const { status, output } = await runModule('readme-server', code.replace(LISTENS, ASKS_ITSELF))
  assert.is(status, 0, output)
  const answers: [number, boolean, boolean][] = JSON.parse(output)
  assert.equal(answers.slice(0, 100), Array(100).fill([200, true, false]))
  assert.equal(answers.slice(100), [[429, true, true]])
})

test('the README and the other pages have js blocks, and they use the package by its name', () => {
  assert.ok(blocks.filter(({ page }) => page === 'README.md').length >= 3, 'README.md has three examples')
  assert.ok(blocks.length >= 8, `only ${blocks.length} \`\`\`js blocks were found`)
  for (const { code, page, line } of blocks)
    assert.match(code, /from 'millrace(?:\/[\w/-]+)?'/, `${page}:${line}`)
})

for (const { code, page, line, needsAddon, needsRedis } of blocks) {
  if (code.includes(LISTENS)) continue // run above
  if (needsRedis) {
    redisTest(`the js block at line ${line} of ${page} runs to its end on a server`, async () => {
      assert.match(code, REDIS_URL)
      const server = await startRedis()
      // A busy machine may take longer than the deadline that limiters have by themselves.
      const own = code
        .replace(REDIS_URL, `redis://127.0.0.1:${server.port}`)
        .replace('prefix:', "deadline: '5s', prefix:")
      const { status, output } = await runModule(`${page.replaceAll('/', '-')}-${line}`, own)
      await server.stop()
      assert.is(status, 0, `${page}:${line}: ended with ${status}\n${output}`)
      const comments = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, comment]) => comment)
      assert.equal(output.trim().split('\n'), comments)
    })
    continue
  }
  const run = needsAddon && isLeftOut() ? test.skip : test
  run(`the js block at line ${line} of ${page} runs to its end`, async () => {
    const env = needsAddon ? { ...process.env, MILLRACE_NATIVE: '1' } : process.env
    const { status, output } = await runModule(`${page.replaceAll('/', '-')}-${line}`, code, env)
    assert.is(status, 0, `${page}:${line}: ended with ${status}\n${output}`)
  })
}

/** The commands of npm itself that the README has. */
const NPM_COMMANDS = ['ci', 'install', 'pack', 'test']

test('the commands of the sh blocks of the README exist: scripts of the package, or lines of millrace that run', async () => {
  const { scripts, repository } = JSON.parse(readText('package.json'))
  const lines = [...readme.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(({ 1: code = '' }) =>
    code.trim().split('\n'),
  )
  assert.ok(lines.length >= 3)
  for (const command of lines.flatMap((line) => line.split(' && '))) {
    const [program, ...args] = command.split(' ')
    if (program === 'npx') {
      assert.is(args[0], 'millrace', command)
      const child = spawnSync(process.execPath, [join(root, 'cli/dist/main.js'), ...args.slice(1)], {
        cwd: root,
      })
      assert.is(child.status, 0, `${command}: ${child.stderr}`)
    } else if (program === 'git') {
      assert.equal(args, ['clone', repository.url.replace(/^git\+|\.git$/g, '')], command)
    } else if (program !== 'cd') {
      assert.is(program, 'npm', command)
      const [name, script] = args
      assert.ok(name === 'run' ? script! in scripts : NPM_COMMANDS.includes(name!), command)
    }
  }
})

test('a failing block is detected', async () => {
  const { status, output } = await runModule('broken', "import { nothing } from 'millrace'")
  assert.is.not(status, 0)
  assert.match(output, 'nothing')
})

test.run()
