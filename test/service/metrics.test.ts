// `/metrics`: its text is that of Prometheus, and its histogram counts each request once.
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { prometheusTest } from '../redis/skip.js'
import { engine } from './engine.js'

const NAME = 'millrace_service_request_duration_seconds'

/** The samples of the histogram with these labels: the counts of its buckets in their order, and its count and sum. */
function histogramIn(text: string, labels: string) {
  const numbers = (sample: string) =>
    [...text.matchAll(new RegExp(`^${sample} (\\S+)$`, 'gm'))].map(([, number]) => Number(number))
  const [count] = numbers(`${NAME}_count\\{${labels}\\}`)
  const [sum] = numbers(`${NAME}_sum\\{${labels}\\}`)
  return { buckets: numbers(`${NAME}_bucket\\{le="[^"]+",${labels}\\}`), count, sum }
}

test('each request is in the histogram once, by method, route and status', async () => {
  const { post, get, close } = await engine({ limit: '2/1h' })
  for (let i = 0; i < 3; i++) await post('/v1/check', { key: 'a' })
  await post('/v1/check?status=decision', { key: 'a' })
  await post('/v1/check', {})
  const { body: text } = await get('/metrics')
  for (const [labels, count] of [
    ['method="POST",route="/v1/check",status="200"', 3],
    ['method="POST",route="/v1/check",status="429"', 1],
    ['method="POST",route="/v1/check",status="400"', 1],
  ] as const) {
    const histogram = histogramIn(text, labels)
    assert.is(histogram.count, count, labels)
    assert.ok(histogram.sum! > 0)
    assert.equal(
      histogram.buckets,
      histogram.buckets.toSorted((a, b) => a - b),
    )
    assert.is(histogram.buckets.length, 15)
    assert.is(histogram.buckets.at(-1), count)
  }
  await close()
})

prometheusTest('promtool takes the text', async () => {
  const { post, get, close } = await engine({ limit: '2/1h' })
  await post('/v1/check', { key: 'a' })
  const { body: input } = await get('/metrics')
  await close()
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  assert.is(status, 0, `${stdout}${stderr}`)
})

test.run()
