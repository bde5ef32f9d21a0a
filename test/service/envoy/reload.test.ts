// Files that change, and what /readyz, metrics and the log say; the route /json.
import { rmSync, writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../../redis/poll.js'
import { engine } from '../engine.js'
import { inFolder } from '../folder.js'
import { clientOf, requestOf, type Stage, withEnvoy } from './stage.js'

const limit = (requests: number | string, more = '') => `
domain: test
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: ${requests} } }
${more}`

const metrics = async ({ engine }: Stage, name: string) =>
  (await engine.get('/metrics')).body
    .split('\n')
    .filter((line: string) => line.startsWith(name))
    .map((line: string) => line.replace('millrace_envoy_', ''))

test('a reload brings other limits, and counts stay', () =>
  withEnvoy(limit(1), {}, async ({ engine, codes, write }) => {
    assert.is(await codes(['user', 'a']), 'ok ok')
    assert.is(await codes(['user', 'a']), 'over over')
    write('limits.yaml', limit(2, '  - { key: page, rate_limit: { unit: hour, requests_per_unit: 1 } }'))
    engine.reload()
    assert.is(await codes(['user', 'a']), 'ok ok')
    assert.is(await codes(['user', 'a'], ['page', 'x']), 'over over ok')
    write('limits.yaml', limit(3))
    for (let i = 0; i < 3; i++) engine.reload()
    assert.is(await codes(['user', 'a'], ['page', 'x']), 'ok ok ok')
    assert.is(await codes(['user', 'a'], ['page', 'x']), 'over over ok')
    write('limits.yaml', limit(9, '  - { key: page, rate_limit: { unit: hour, requests_per_unit: 1 } }'))
    engine.reload()
    assert.is(
      await codes(['user', 'a'], ['page', 'x']),
      'ok ok ok',
      'a limiter that was closed is made again',
    )
  }))

test('a reload that fails keeps the limits, and /readyz, metrics and the log say so', () =>
  withEnvoy(limit(1), { logLevel: 'error' }, async (stage) => {
    const { engine, codes, write } = stage
    assert.equal((await engine.get('/readyz')).body, { status: 'ready' })
    write('limits.yaml', limit('many'))
    const lines: string[] = []
    const { write: original } = process.stderr
    process.stderr.write = (line: string | Uint8Array) => lines.push(String(line)) > 0
    engine.reload()
    process.stderr.write = original
    assert.match(
      lines.join(''),
      /the limits stay as they were: [^ ]*limits\.yaml:4: .*requests_per_unit.*many/,
    )
    const { status, body } = await engine.get('/readyz')
    assert.equal([status, body], [200, { status: 'ready', envoyConfig: 'stale' }])
    assert.equal(await metrics(stage, 'millrace_envoy_config'), [
      'config_loads_total{result="ok"} 1',
      'config_loads_total{result="failed"} 1',
      'config_stale 1',
    ])
    assert.is(await codes(['user', 'a']), 'ok ok')
    assert.is(await codes(['user', 'a']), 'over over')
    write('limits.yaml', limit(2))
    engine.reload()
    assert.equal((await engine.get('/readyz')).body, { status: 'ready' })
    assert.equal(await metrics(stage, 'millrace_envoy_config_stale'), ['config_stale 0'])
    assert.is(await codes(['user', 'a']), 'ok ok')
  }))

test('a file that changes, and one that comes into a directory or leaves it, are read within seconds', () =>
  inFolder({ 'limits.yaml': limit(1) }, async (folder) => {
    const own = await engine({ envoyConfig: [folder], grpcPort: 0 })
    const client = clientOf(own.grpcAddress!)
    const write = (name: string, text: string) => writeFileSync(`${folder}/${name}`, text)
    const page = (requests: number) =>
      `domain: test\ndescriptors: [{ key: page, rate_limit: { unit: day, requests_per_unit: ${requests} } }]`
    const limitOf = async (key: string) => {
      const { statuses } = await client.ask(
        requestOf('test', [{ entries: [key, 'a'], hits_addend: { value: 0 } }]),
      )
      return statuses[0]!.current_limit?.requests_per_unit
    }
    const isLimit = (key: string, expected: number | undefined) =>
      poll(async () => (await limitOf(key)) === expected, `${key}: ${expected}`)
    assert.is(await limitOf('user'), 1)
    write('limits.yaml', limit(2))
    await isLimit('user', 2)
    write('more.yaml', page(5))
    await isLimit('page', 5)
    write('more.yaml', page(6))
    await isLimit('page', 6)
    rmSync(`${folder}/more.yaml`)
    await isLimit('page', undefined)
    client.close()
    await own.close()
  }))

const METRICS = `
domain: test
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: detailed, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 10 } }
  - key: route
    value: api/*
    value_to_metric: true
    descriptors:
      - { key: method, rate_limit: { unit: day, requests_per_unit: 10 } }
      - { key: method, value: GET, value_to_metric: true, rate_limit: { unit: day, requests_per_unit: 10 } }
      - { key: verb, value_to_metric: true, rate_limit: { unit: day, requests_per_unit: 10 } }
  - key: svc
    value: s*
    share_threshold: true
    value_to_metric: true
    descriptors:
      - { key: call, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: soft, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`

test('metrics show values for detailed_metric and value_to_metric only', () =>
  withEnvoy(METRICS, {}, async (stage) => {
    const { ask } = stage
    await ask(['plain', 'secret'])
    await ask({ entries: ['plain', 'secret'], hits_addend: { value: 8 } })
    await ask({ entries: ['plain', 'secret'], hits_addend: { value: 8 } })
    await ask(['detailed', 'a'])
    await ask(['route', 'api/x', 'method', 'PUT'])
    await ask(['route', 'api/x', 'method', 'GET'])
    await ask(['route', 'api/y', 'verb', 'do'])
    await ask(['svc', 's1', 'call', 'c'])
    await ask(['soft', 'x'])
    await ask(['soft', 'x'])
    await ask({ entries: ['plain', 'other'], limit: { unit: 'DAY', requests_per_unit: 9 } })
    assert.equal(
      (await metrics(stage, 'millrace_envoy_hits')).map((line: string) =>
        line.replace('hits_total{domain="test",', ''),
      ),
      [
        'rule="plain",value="",outcome="allowed"} 1',
        'rule="plain",value="",outcome="near"} 8',
        'rule="plain",value="",outcome="over"} 8',
        'rule="detailed",value="detailed=a",outcome="allowed"} 1',
        'rule="route_api/*.method",value="route=api/x",outcome="allowed"} 1',
        'rule="route_api/*.method_GET",value="route=api/x",outcome="allowed"} 1',
        'rule="route_api/*.verb",value="route=api/y,verb=do",outcome="allowed"} 1',
        'rule="svc_s*.call",value="svc=s*,call=c",outcome="allowed"} 1',
        'rule="soft",value="",outcome="near"} 1',
        'rule="soft",value="",outcome="shadow"} 1',
        'rule="override",value="",outcome="allowed"} 1',
      ],
    )
  }))

test('metrics show a thousand values, and the rest as other', () =>
  withEnvoy(METRICS, {}, async (stage) => {
    const { client } = stage
    for (let from = 0; from < 1_100; from += 100) {
      const some = Array.from({ length: 100 }, (_, i) => ['detailed', `v${from + i}`])
      await client.ask(requestOf('test', some))
    }
    const lines = await metrics(stage, 'millrace_envoy_hits')
    assert.is(lines.length, 1_001)
    assert.ok(lines.some((line: string) => /value="other",outcome="allowed"} 100$/.test(line)))
  }))

test('calls are counted by the status of gRPC', () =>
  withEnvoy(METRICS, {}, async (stage) => {
    await stage.ask(['plain', 'x'])
    await stage.ask([]).catch(() => {})
    const lines = await metrics(stage, 'millrace_envoy_call_duration_seconds_count')
    assert.equal(lines, [
      'call_duration_seconds_count{code="OK"} 1',
      'call_duration_seconds_count{code="INVALID_ARGUMENT"} 1',
    ])
  }))

test('/json takes the fields in both spellings, and answers 200 or 429', () =>
  withEnvoy(limit(2), { envoyHeaders: ['A', 'B', 'C'] }, async ({ engine: { post }, clock }) => {
    const entries = [{ key: 'user', value: 'a' }]
    const first = await post('/json', { domain: 'test', descriptors: [{ entries }] })
    assert.equal(
      [first.status, first.body],
      [
        200,
        {
          overallCode: 'OK',
          statuses: [
            {
              code: 'OK',
              currentLimit: { requestsPerUnit: 2, unit: 'DAY' },
              limitRemaining: 1,
              durationUntilReset: '86840s',
            },
          ],
          responseHeadersToAdd: [
            { key: 'A', value: '2' },
            { key: 'B', value: '1' },
            { key: 'C', value: '86840' },
          ],
        },
      ],
    )
    clock.advance(500)
    const over = await post('/json', { domain: 'test', descriptors: [{ entries, hitsAddend: '2' }] })
    assert.is(over.status, 429)
    assert.is(over.body.statuses[0].code, 'OVER_LIMIT')
    const snake = {
      domain: 'test',
      hits_addend: 1,
      descriptors: [{ entries, limit: { requests_per_unit: 9, unit: 'DAY' } }],
    }
    assert.is((await post('/json', snake)).body.statuses[0].limitRemaining, 7)
    for (const [body, field] of [
      [{ domain: 1 }, 'domain'],
      [{ domain: 'test', descriptor: [] }, 'descriptor'],
      [{ domain: 'test', descriptors: {} }, 'descriptors'],
      [
        { domain: 'test', descriptors: [{ entries: [{ key: 'k', value: 1 }] }] },
        'descriptors[0].entries[0].value',
      ],
      [{ domain: 'test', descriptors: [{ entries, hitsAddend: 1.5 }] }, 'descriptors[0].hits_addend'],
      [{ domain: 'test', descriptors: [{ entries, limit: { unit: 'WEEK' } }] }, 'descriptors[0].limit.unit'],
      [{ domain: 'test', hitsAddend: 1, hits_addend: 1 }, 'hits_addend'],
    ] as const) {
      const { status, body: problem } = await post('/json', body)
      assert.equal([status, problem.code, problem.field], [400, 'ERR_MILLRACE_INVALID_DESCRIPTOR', field])
    }
  }))

test.run()
