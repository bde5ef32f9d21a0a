// Logs of servers and load balancers: each is read by its own format and by the one that is guessed, and gives the same requests.
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { FORMAT_NAMES, type FormatName, guessed, parserOf } from 'millrace-cli/dist/replay/formats.js'
import { timeOf } from 'millrace-cli/dist/replay/logged-time.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { log, ran } from '../streams.js'

const AT = Date.UTC(2026, 2, 9, 14, 5, 9, 250)
const JSON_LINES: Record<string, object> = {
  nginx: {
    time_iso8601: '2026-03-09T14:05:09.250+00:00',
    remote_addr: '192.0.2.7',
    remote_user: 'ada',
    request: 'GET /a?b=c HTTP/1.1',
    status: '200',
  },
  pino: {
    ...{ level: 30, time: AT, pid: 1, hostname: 'h', msg: 'request completed', responseTime: 3 },
    req: {
      id: 1,
      method: 'GET',
      url: '/a?b=c',
      headers: { 'x-api-key': 'k1' },
      remoteAddress: '192.0.2.7',
      remotePort: 1,
    },
    res: { statusCode: 200 },
  },
  caddy: {
    ...{ level: 'info', ts: AT / 1000, logger: 'http.log.access', msg: 'handled request', user_id: 'ada' },
    request: {
      remote_ip: '10.0.0.1',
      client_ip: '192.0.2.7',
      proto: 'HTTP/2.0',
      method: 'GET',
      host: 'h',
      uri: '/a?b=c',
    },
    ...{ duration: 0.001, size: 9, status: 200 },
  },
  traefik: {
    ...{ ClientAddr: '192.0.2.7:4', ClientHost: '192.0.2.7', ClientUsername: 'ada', RequestMethod: 'GET' },
    ...{ RequestPath: '/a?b=c', RequestProtocol: 'HTTP/1.1', StartUTC: '2026-03-09T14:05:09.250123456Z' },
    ...{ level: 'info', msg: '', time: '2026-03-09T14:06:00Z' },
  },
  json: { '@timestamp': '2026-03-09T14:05:09.250Z', client_ip: '192.0.2.7', method: 'GET', uri: '/a?b=c' },
}
const LINES: Record<FormatName, string> = {
  common: '192.0.2.7 - ada [09/Mar/2026:14:05:09 +0000] "GET /a?b=c HTTP/1.1" 200 512',
  alb:
    'h2 2026-03-09T14:05:10.000000Z app/lb/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 ' +
    '"GET https://shop.example:443/a?b=c HTTP/2.0" "curl/7.46.0" ECDHE-RSA TLSv1.2 arn:aws:x "Root=1-58337281" "shop.example" ' +
    '"arn:aws:acm:y" 1 2026-03-09T14:05:09.250000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1',
  elb:
    '2026-03-09T14:05:09.250000Z lb 192.0.2.7:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 ' +
    '"GET http://shop.example:80/a?b=c HTTP/1.1" "curl/7.38.0" - -',
  ...(Object.fromEntries(
    Object.entries(JSON_LINES).map(([name, line]) => [name, JSON.stringify(line)]),
  ) as Record<Exclude<FormatName, 'common' | 'alb' | 'elb'>, string>),
}

test('each format reads the time, the client, and the path of its lines, and no other format but any JSON reads them', () => {
  assert.equal(Object.keys(LINES).toSorted(), FORMAT_NAMES.toSorted())
  for (const [name, line] of Object.entries(LINES)) {
    for (const other of FORMAT_NAMES) {
      const found = parserOf(other, {})(line)
      if (other !== name) {
        if (other !== 'json' || !line.startsWith('{'))
          assert.not(typeof found === 'object', `${name} by ${other}`)
        continue
      }
      assert.type(found, 'object', name)
      const { atMs, ip, request } = found as Exclude<typeof found, undefined | 'other'>
      assert.is(atMs, name === 'common' ? AT - 250 : AT, name)
      assert.is(ip, '192.0.2.7', name)
      assert.match(request, /^GET .*\/a\?b=c/, name)
    }
    assert.is(guessed([line], {}), name)
  }
})

const text = (name: FormatName, count: number): string => `${LINES[name]}\n`.repeat(count)

for (const name of FORMAT_NAMES) {
  test(`a log in the format ${name} is replayed, guessed or named, and the report says which`, async () => {
    const named = await ran(
      ['replay', '-', '-l', '3', '-k', 'ip+path', '-f', name, '--json'],
      [text(name, 5)],
    )
    const found = JSON.parse(named.out)
    assert.equal(
      [found.requests, found.refused, found.format, found.formatGuessed, found.topRefused[0].client],
      [5, 2, name, false, '192.0.2.7 /a'],
    )
    const auto = await ran(['replay', '-', '-l', '3', '-k', 'ip+path'], [text(name, 5)])
    assert.match(auto.out, new RegExp(`\nformat +${name} \\(guessed\\)\n`))
    assert.match(auto.out, /\nrequests refused +2 /)
  })
}

test('the log of Fastify has each request once', async () => {
  const lines: string[] = []
  const app = Fastify({ logger: { stream: { write: (line: string) => void lines.push(line) } } })
  app.get('/', (request) => {
    request.log.info('inside')
    return 'hello'
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  for (let i = 0; i < 5; i++) await fetch(`http://127.0.0.1:${port}/?n=${i}`)
  await app.close()
  const { code, out } = await ran(['replay', '-', '-l', '3', '-k', 'ip+path', '--json'], [lines.join('')])
  const { requests, refused, format, withoutRequest, unparsed, topRefused } = JSON.parse(out)
  assert.equal([code, requests, refused, format, unparsed], [0, 5, 2, 'pino', 0])
  assert.is(withoutRequest, lines.length - 5)
  assert.is(topRefused[0].client, '127.0.0.1 /')
})

test('lines of a pino logger that has the request count when it ends, and no others', () => {
  const { req } = JSON_LINES.pino as { req: object }
  const line = { level: 30, time: AT, req }
  const parse = parserOf('pino', {})
  assert.is(parse(JSON.stringify({ ...line, msg: 'found the user' })), 'other')
  assert.is(parse(JSON.stringify({ level: 30, time: AT, msg: 'listening' })), 'other')
  assert.type(parse(JSON.stringify({ ...line, msg: 'request errored', responseTime: 1 })), 'object')
  assert.is(parse('{"level":30,'), undefined)
})

test('a named field of the user is the key, by a path through objects, and of names with dots', async () => {
  const { req, ...line } = JSON_LINES.pino as { req: object }
  const lines = ['k1', 'k1', 'k2', 'k1', undefined].map((key) =>
    JSON.stringify({ ...line, req: { ...req, headers: { 'x-api-key': key } }, 'user.id': key }),
  )
  for (const field of ['req.headers.x-api-key', 'user.id']) {
    const { out } = await ran(
      ['replay', '-', '-l', '2', '--key-field', field, '--json'],
      [`${lines.join('\n')}\n`],
    )
    const { clients, refused, withoutUser, key, topRefused } = JSON.parse(out)
    assert.equal([clients, refused, withoutUser, key, topRefused[0].client], [3, 1, 1, 'user', 'k1'], field)
  }
  const path = await ran(
    ['replay', '-', '-l', '2', '--key-field', 'req.headers.x-api-key', '-k', 'user+path', '--json'],
    [`${lines.join('\n')}\n`],
  )
  assert.is(JSON.parse(path.out).topRefused[0].client, 'k1 /a')
})

test('named fields read JSON that no format knows, and a named time goes before the usual ones', async () => {
  const lines = [0, 1, 2].map((i) => JSON.stringify({ when: { at: AT + i }, time: 'never', who: 7 }))
  const args = ['replay', '-', '--time-field', 'when.at', '--key-field', 'who', '-l', '2', '--json']
  const { out } = await ran(args, [lines.join('\n')])
  const { requests, refused, firstMs, lastMs, format } = JSON.parse(out)
  assert.equal([requests, refused, firstMs, lastMs, format], [3, 1, AT, AT + 2, 'json'])
  const { code, err } = await ran(['replay', '-', '--time-field', 'when', '--key-field', 'who'], [lines[0]!])
  assert.is(code, 2)
  assert.match(
    err,
    /none of the 1 lines is in JSON with a time and a client, by "when" and "who"; the first is: \{"when"/,
  )
})

test('named fields need JSON', async () => {
  for (const option of ['--time-field', '--key-field']) {
    const { code, err } = await ran(['replay', '-', '-f', 'alb', option, 'a'], [log({ '192.0.2.7': 1 })])
    assert.is(code, 2)
    assert.match(err, `option '${option} <path>' cannot be used with --format alb. Expected a format of JSON`)
  }
  assert.is(guessed([LINES.common], { keyField: 'a' }), undefined)
})

test('a log that begins with hundreds of other lines is read all the same', async () => {
  const banner = Array.from({ length: 450 }, (_, i) => `starting ${i}\n`).join('')
  const { out } = await ran(['replay', '-', '-l', '3', '--json'], [banner + text('caddy', 5)])
  const { requests, unparsed, format } = JSON.parse(out)
  assert.equal([requests, unparsed, format], [5, 450, 'caddy'])
})

test('a named format reads no other, and the error names it', async () => {
  const { code, err } = await ran(['replay', '-', '-f', 'traefik'], [text('common', 2)])
  assert.is(code, 2)
  assert.match(err, /none of the 2 lines is in the format traefik; the first is: 192\.0\.2\.7/)
  const { err: none } = await ran(['replay', '-', '-f', 'traefik'], ['{"msg":"started"}\n'])
  assert.match(none, /none of the 1 lines has a request/)
})

test('load balancers write addresses of both families', async () => {
  for (const client of ['2001:db8:1:200::7:2817', '[2001:db8:1:200::7]:2817']) {
    const { ip } = parserOf('elb', {})(LINES.elb.replace('192.0.2.7:2817', client)) as { ip: string }
    assert.is(ip, '2001:db8:1:200::7')
  }
  assert.is(parserOf('elb', {})(LINES.elb.replace('192.0.2.7:2817', '-')), undefined)
})

test('a network of IPv6 is one client, as for the middleware; mapped IPv4 is IPv4', async () => {
  const lines = [
    '2001:db8:1:2::7',
    '2001:db8:1:2ff::9',
    '2001:DB8:1:200:0:0:0:1',
    '::ffff:192.0.2.7',
    '192.0.2.7',
  ]
  const { out } = await ran(
    ['replay', '-', '-l', '1', '--json'],
    [log(Object.fromEntries(lines.map((ip) => [ip, 1])))],
  )
  const { topRefused } = JSON.parse(out)
  assert.equal(
    topRefused.map(({ client, requests }: { client: string; requests: number }) => [client, requests]),
    [
      ['2001:db8:1:200::/56', 2],
      ['192.0.2.7', 2],
    ],
  )
  const field = await ran(
    ['replay', '-', '-l', '1', '--key-field', 'real', '--json'],
    lines.map((real) => `${JSON.stringify({ time: AT, real })}\n`),
  )
  assert.is(JSON.parse(field.out).clients, 3)
})

test('times are numbers of any usual unit, ISO 8601, or as in the Common Log Format', () => {
  const whole = AT - 250
  for (const time of [AT, AT / 1000, AT * 1e3, `${AT}`, `${AT / 1000}`, '2026-03-09T14:05:09.250Z'])
    assert.is(timeOf(time), AT, `${time}`)
  assert.is(timeOf(AT * 1e6), AT)
  for (const time of [
    '2026-03-09T14:05:09Z',
    '2026-03-09T16:05:09+02:00',
    '2026-03-09T06:35:09-0730',
    '2026-03-09 14:05:09',
    '09/Mar/2026:14:05:09 +0000',
  ])
    assert.is(timeOf(time), whole, time)
  for (const time of [
    '2026-02-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-03-09',
    '24:00',
    '',
    -1,
    Number.NaN,
    null,
    {},
  ])
    assert.is(timeOf(time), undefined, `${time}`)
})

test('ISO 8601 is read as Date.parse does', () => {
  const moment = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
  fc.assert(fc.property(moment, (date) => assert.is(timeOf(date.toISOString()), date.getTime())))
})

test('no line makes a parser throw', () => {
  const line = fc.oneof(
    fc.string({ maxLength: 100 }),
    fc.json(),
    fc
      .constantFrom(...Object.values(LINES))
      .chain((text) => fc.nat({ max: text.length }).map((cut) => text.slice(0, cut) + text.slice(cut + 1))),
  )
  fc.assert(
    fc.property(line, (text) => {
      for (const name of FORMAT_NAMES) {
        const found = parserOf(name, {})(text)
        if (typeof found === 'object') assert.ok(Number.isInteger(found.atMs) && found.ip !== '')
      }
    }),
  )
})

test.run()
