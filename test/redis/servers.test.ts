// run: typescript
// The servers that other tests stand on: each starts on a port of its own, and none is left behind.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { redisVersion } from './programs.js'
import { startMemcached, startRedis } from './servers.js'
import { memcachedTest, redisTest as test } from './skip.js'
import { connectWire, sendOnce } from './wire.js'

/** Whether a process runs; a zombie does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** The error of a connection, or nothing if it is accepted. */
async function refusal(port: number): Promise<string | undefined> {
  const socket = connect(port, HOST)
  try {
    await once(socket, 'connect')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    socket.destroy()
  }
}

test('a Redis answers, is the process that it names, and keeps nothing on disk', async () => {
  const redis = await startRedis()
  const info: string = await sendOnce(redis.port, 'INFO', 'server')
  assert.match(info, `process_id:${redis.pid}\r\n`)
  assert.match(info, `_version:${redisVersion().version}\r\n`)
  assert.equal(await sendOnce(redis.port, 'CONFIG', 'GET', 'save'), ['save', ''])
  assert.equal(await sendOnce(redis.port, 'CONFIG', 'GET', 'dir'), ['dir', redis.dir])
  const { pid } = redis
  await redis.stop()
  assert.not(isAlive(pid))
  assert.not(existsSync(redis.dir))
  assert.is(await refusal(redis.port), 'ECONNREFUSED')
  await redis.stop()
})

test('arguments reach the server, and one with a password is waited for too', async () => {
  const redis = await startRedis({ args: ['--maxmemory', '7mb', '--requirepass', 'secret'] })
  const wire = await connectWire(redis.port)
  await wire.send('AUTH', 'secret')
  assert.equal(await wire.send('CONFIG', 'GET', 'maxmemory'), ['maxmemory', String(7 * 2 ** 20)])
  wire.close()
  await redis.stop()
})

test('a server that refuses its arguments is an error that says why', async () => {
  let message = ''
  await startRedis({ args: ['--no-such-option', '1'] }).catch((error) => {
    message = error.message
  })
  assert.match(message, /ended with 1: .*no-such-option/s)
})

test('a paused Redis keeps connections open without a reply, until it is resumed', async () => {
  const redis = await startRedis()
  const wire = await connectWire(redis.port)
  await redis.pause()
  let isAnswered = false
  const reply = wire.send('PING').then((text) => {
    isAnswered = true
    return text
  })
  assert.is(await refusal(redis.port), undefined, 'the system still accepts for it')
  assert.not(isAnswered)
  redis.resume()
  assert.is(await reply, 'PONG')
  await redis.pause()
  await redis.stop()
  assert.is(await refusal(redis.port), 'ECONNREFUSED', 'a paused one can be stopped')
})

test('a killed Redis breaks connections and refuses new ones; it restarts empty on its port', async () => {
  const redis = await startRedis()
  const { pid } = redis
  const wire = await connectWire(redis.port)
  await wire.send('SET', 'key', 'value')
  const closed = once(wire.socket, 'close')
  await redis.kill()
  await closed
  assert.not(isAlive(pid))
  assert.is(await refusal(redis.port), 'ECONNREFUSED')
  assert.throws(() => redis.pid, /does not run/)
  await redis.restart()
  assert.is.not(redis.pid, pid)
  assert.is(await sendOnce(redis.port, 'GET', 'key'), null)
  await sendOnce(redis.port, 'SET', 'key', 'value')
  await redis.restart()
  assert.is(await sendOnce(redis.port, 'DBSIZE'), 0, 'also if it was running')
  await redis.stop()
})

const dir = mkdtempSync(join(tmpdir(), 'millrace-kept-'))
process.on('exit', () => rmSync(dir, { recursive: true }))

test('a folder of the caller is kept, and what is in it survives a restart', async () => {
  const redis = await startRedis({ dir, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  await sendOnce(redis.port, 'SET', 'key', 'value')
  await redis.restart()
  assert.is(await sendOnce(redis.port, 'GET', 'key'), 'value')
  await redis.stop()
  assert.ok(existsSync(dir))
})

memcachedTest('memcached answers, and restarts empty on its port', async () => {
  const memcached = await startMemcached()
  assert.match(await talk(memcached.port, 'stats\r\n', /END\r\n/), `STAT pid ${memcached.pid}\r\n`)
  await talk(memcached.port, 'set key 0 0 5\r\nvalue\r\n', /STORED\r\n/)
  assert.match(await talk(memcached.port, 'get key\r\n', /END\r\n/), 'value')
  await memcached.restart()
  assert.is(await talk(memcached.port, 'get key\r\n', /END\r\n/), 'END\r\n')
  const { pid } = memcached
  await memcached.stop()
  assert.not(isAlive(pid))
})

/** Sends text and returns the reply up to an end. */
async function talk(port: number, text: string, end: RegExp): Promise<string> {
  const socket = connect(port, HOST).setEncoding('utf8')
  socket.write(text)
  let reply = ''
  for await (const part of socket) {
    reply += part
    if (end.test(reply)) break
  }
  return reply
}

/** Ways in which a process with a Redis ends, without having stopped it. */
const ENDS: Record<string, string> = {
  'returns from its last statement': '',
  throws: "throw new Error('on purpose')",
  'calls process.exit': 'process.exit(3)',
  'is terminated': "process.kill(process.pid, 'SIGTERM'); await new Promise((r) => setTimeout(r, 60_000))",
}

for (const [way, code] of Object.entries(ENDS))
  test(`a Redis and its folder are gone when the process that started it ${way}`, async () => {
    const servers = JSON.stringify(new URL('./servers.js', import.meta.url).href)
    const program = `
      const redis = await (await import(${servers})).startRedis()
      console.log(redis.pid, redis.dir)
      ${code}`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    await once(child, 'close')
    const [pid, dir] = out.trim().split(' ')
    assert.match(dir!, 'millrace-redis-server-')
    await poll(() => !isAlive(Number(pid)), 'the end of the Redis')
    assert.not(existsSync(dir!))
  })

test.run()
