// `docs/envoy.md`, followed by a user of envoyproxy/ratelimit with files of theirs.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText } from '../../package/root.js'
import { command, MAIN } from '../command-line.js'
import { inFolder } from '../folder.js'
import { clientOf, requestOf } from './stage.js'

const page = readText('docs/envoy.md')
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text!)
const file = blocks('yaml')[0]!

/** Starts what the page says, with the files of the page and on free ports. */
async function started(
  act: (url: string, grpcAddress: string, folder: string) => Promise<void>,
): Promise<void> {
  await inFolder({}, async (folder) => {
    mkdirSync(`${folder}/limits`)
    writeFileSync(`${folder}/${/^# (\S+)/.exec(file)![1]}`, file)
    const line = blocks('sh')
      .find((text) => text.includes('--envoy-config'))!
      .trim()
    const args = line
      .replace('node_modules/.bin/millrace serve ', '')
      .replace('limits', `${folder}/limits`)
      .replace('8081', '0')
    const served = await command(args.split(' '), { MILLRACE_SERVE_PORT: '0' })
    const [, grpcAddress] = /answering Envoy by gRPC on (\S+)/.exec(served.stdout) ?? []
    assert.ok(grpcAddress, served.stderr)
    try {
      await act(served.url, grpcAddress!, folder)
    } finally {
      assert.is(await served.end(), 0)
    }
  })
}

test('their file serves as it is, by JSON and by gRPC, and the answers are those of the page', () =>
  started(async (url, grpcAddress) => {
    const ask = blocks('bash')[0]!.trim().replace('http://127.0.0.1:8080', url)
    const answer = () => JSON.parse(execFileSync('sh', ['-c', ask], { encoding: 'utf8' }))
    const withoutTime = (answer: object) => JSON.stringify(answer).replace(/"[\d.]+s"/, '')
    assert.is(withoutTime(answer()), withoutTime(JSON.parse(blocks('json')[0]!)))
    answer()
    answer()
    assert.is(answer().overallCode, 'OVER_LIMIT')
    const client = clientOf(grpcAddress)
    const number = ['to_number', '206']
    assert.is(
      (await client.ask(requestOf('messaging', [number]))).overall_code,
      'OVER_LIMIT',
      'one count for both',
    )
    const marketing = ['message_type', 'marketing', 'to_number', '206']
    const other = await client.ask(requestOf('messaging', [marketing, ['to_number', '207']]))
    assert.equal(
      other.statuses.map(({ limit_remaining }) => limit_remaining),
      [4, 2],
    )
    client.close()
  }))

test('an error in a file is shown as on the page, and ends the start', () =>
  inFolder({}, async (folder) => {
    mkdirSync(`${folder}/limits`)
    const wrong = file.replace('requests_per_unit: 5', 'requests_per_unit: 5\n          shadow_mode: true')
    writeFileSync(`${folder}/limits/messaging.yaml`, wrong)
    const { code, stderr } = await command(['--envoy-config', `${folder}/limits`])
    const shown = blocks('text')[0]!
      .replace(/^.*?: /, '')
      .replaceAll('descriptors[0].rate_limit', '')
      .trim()
    assert.is(code, 2)
    assert.match(stderr, /messaging\.yaml:\d+: descriptors\[0\]\.descriptors\[0\]\.rate_limit: expected/)
    assert.ok(stderr.includes(shown.replace(/^: /, '')), stderr)
  }))

test('config check shows what the page shows', () =>
  inFolder({}, async (folder) => {
    mkdirSync(`${folder}/limits`)
    writeFileSync(`${folder}/limits/messaging.yaml`, file)
    const line = blocks('bash')[1]!.trim().split(' ').slice(2)
    const out = execFileSync(process.execPath, [MAIN, ...line], { cwd: folder, encoding: 'utf8' })
    assert.is(out, blocks('text').at(-1))
  }))

test('the page has every metric', () => {
  const names = readText('service/src/envoy/metrics.ts').match(/millrace_envoy_\w+/g)!
  for (const name of names) assert.ok(page.includes(`\`${name}\``), name)
})

test.run()
