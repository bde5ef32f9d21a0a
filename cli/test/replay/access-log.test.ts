import { parseLine } from 'millrace-cli/dist/replay/access-log.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const COMMON = '192.0.2.7 - ada [09/Mar/2026:14:05:09 +0000] "GET / HTTP/1.1" 200 512'
const AT = Date.UTC(2026, 2, 9, 14, 5, 9)
const PARSED = { atMs: AT, ip: '192.0.2.7', user: 'ada', request: 'GET / HTTP/1.1' }

const common = ({
  ip = '192.0.2.7',
  user = '-',
  time = '09/Mar/2026:14:05:09 +0000',
  request = 'GET / HTTP/1.1',
}) => `${ip} - ${user} [${time}] "${request}" 200 512`
const at = (time: string) => parseLine(common({ time }))?.atMs

test('a line of the Common Log Format gives time, client, user and request', () => {
  assert.equal(parseLine(COMMON), PARSED)
})

test('a line of the Combined Log Format gives the same', () => {
  assert.equal(parseLine(`${COMMON} "https://shop.example/" "curl/8.9.1"`), PARSED)
  assert.equal(parseLine(`${COMMON} "-" "-"`), PARSED)
})

test('extra fields are ignored', () => {
  assert.equal(parseLine(`${COMMON} "-" "curl/8.9.1" 0.003 "198.51.100.1"`), PARSED)
  assert.equal(parseLine(`${COMMON} 0.003`), PARSED)
})

test('a client may be an IPv6 address or a host name', () => {
  for (const ip of ['2001:db8::1', '2001:db8:0:0:0:0:0:1', '::1', 'host-7.example.net', 'localhost'])
    assert.is(parseLine(common({ ip }))?.ip, ip)
})

test('a user may have spaces and brackets', () => {
  for (const user of ['Ada Lovelace', 'a [b] c', '""', 'x [09/Feb/2026] y'])
    assert.equal(parseLine(common({ user })), { ...PARSED, user }, user)
})

test('escaped quotes and backslashes stay inside their field', () => {
  for (const text of ['GET /?q=\\"lamp\\" HTTP/1.1', '\\"', 'GET /a\\\\', '\\x16\\x03\\x01', '-', ''])
    assert.equal(
      parseLine(`${common({ request: text })} "${text}" "${text}"`),
      { ...PARSED, user: '-', request: text },
      text,
    )
})

test('a request that looks like a time does not replace the time', () => {
  assert.is(parseLine(common({ request: 'GET /[01/Jan/2020:00:00:00 +0000] HTTP/1.1' }))?.atMs, AT)
})

test('times in all zones are converted to UTC', () => {
  assert.is(at('09/Mar/2026:16:05:09 +0200'), AT)
  assert.is(at('09/Mar/2026:06:35:09 -0730'), AT)
  assert.is(at('10/Mar/2026:04:05:09 +1400'), AT)
  assert.is(at('09/Mar/2026:14:05:09 -0000'), AT)
})

test('a zone offset can cross the end of a day, a month and a year', () => {
  assert.is(at('01/Jan/2026:00:30:00 +0200'), Date.UTC(2025, 11, 31, 22, 30))
  assert.is(at('28/Feb/2028:23:30:00 -0730'), Date.UTC(2028, 1, 29, 7, 0))
})

test('a leap second counts as the second after it', () => {
  assert.is(at('31/Dec/2016:23:59:60 +0000'), Date.UTC(2017, 0, 1))
})

test('an impossible time is invalid', () => {
  for (const time of [
    '31/Feb/2026:14:05:09 +0000',
    '29/Feb/2026:14:05:09 +0000',
    '00/Mar/2026:14:05:09 +0000',
    '32/Mar/2026:14:05:09 +0000',
    '09/Mrz/2026:14:05:09 +0000',
    '09/mar/2026:14:05:09 +0000',
    '09/Mar/2026:24:00:00 +0000',
    '09/Mar/2026:14:60:00 +0000',
    '09/Mar/2026:14:05:61 +0000',
    '09/Mar/2026:14:05:09 +0260',
    '09/Mar/2026:14:05:09 +2400',
    '09/Mar/2026:14:05:09 0200',
    '09/Mar/2026:14:05:09',
    '9/Mar/2026:14:05:09 +0000',
    '09/Mar/1969:14:05:09 +0000',
    '09/Mar/0026:14:05:09 +0000',
  ])
    assert.is(parseLine(common({ time })), undefined, time)
})

test('29 February of a leap year is valid', () => {
  assert.is(at('29/Feb/2028:00:00:00 +0000'), Date.UTC(2028, 1, 29))
})

test('a line in neither format is not a request', () => {
  for (const line of [
    '',
    ' ',
    COMMON.slice(0, -4),
    COMMON.slice(0, 40),
    ` ${COMMON}`,
    COMMON.replace('"GET', 'GET'),
    COMMON.replace(' 200 ', ' OK '),
    COMMON.replace(' 512', ' 5x2'),
    COMMON.replace(' - ada', ' ada'),
    '2026-03-09T14:05:12Z worker 3 restarted',
    '{"ip":"192.0.2.7"}',
    '#Fields: date time c-ip',
  ])
    assert.is(parseLine(line), undefined, line)
})

test('an unknown status or size is accepted', () => {
  assert.is(parseLine(COMMON.replace('200 512', '- -'))?.atMs, AT)
})

test('a hostile line of 100,000 characters is rejected in linear time', () => {
  for (const line of [
    `192.0.2.7 - ${' ['.repeat(50_000)}`,
    `192.0.2.7 - - [09/Mar/2026:14:05:09 +0000] "${'\\'.repeat(100_001)}`,
    `192.0.2.7 - - ${'[09/Mar/2026:14:05:09 +0000] "'.repeat(3_000)}`,
  ])
    assert.is(parseLine(line), undefined)
})

test('a line with the virtual host in front is rejected', () => {
  for (const user of ['-', 'ada'])
    assert.is(parseLine(`www.example.com:443 ${common({ user })}`), undefined, user)
})

test.run()
