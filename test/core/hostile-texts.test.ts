// run: own, typescript
// Texts that attackers write are inert wherever they are shown: on one line, without what moves a cursor or turns the
// direction of writing, and short.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, type LimiterOptions, MillraceError, MillraceLimited } from 'millrace'
import { createBackendLimiter, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { rateLimit } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const HOSTILE = {
  'a script': '<script>alert(1)</script>',
  'ANSI escapes': '\u001b[31mred\u009b0m\u001b]0;title\u0007',
  'bidirectional marks': '\u202eevil\u2066\u200f\u061c',
  'line ends': 'a\r\nERROR forged\u2028b\u2029c\u0085d',
  NUL: 'a\u0000b',
  'lone surrogates': 'a\ud800b\udc00c',
  'invisible characters': 'a\u200bb\u2060c\ufeff\u{e0041}',
  '64 KB': 'x'.repeat(65_536),
}

/** What could act on a terminal, in a log, or on who reads it. */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const LONGEST = 4_096

function assertInert(text: string): void {
  assert.not.match(text, ACTIVE)
  assert.ok(text.length <= LONGEST, `${text.length} characters`)
}

const MINUTE = { limit: 1, window: '1m' } as const

async function heard(name: string, act: () => unknown): Promise<Record<string, unknown>[]> {
  const messages: Record<string, unknown>[] = []
  const hear = (message: unknown) => messages.push(message as Record<string, unknown>)
  subscribe(name, hear)
  try {
    await act()
  } finally {
    unsubscribe(name, hear)
  }
  return messages
}

/** The texts of the warnings with this code that `act` causes. */
async function warned(code: string, act: () => unknown): Promise<string[]> {
  const texts: string[] = []
  const hear = (warning: Error & { code?: string }) => {
    if (warning.code === code) texts.push(warning.message)
  }
  process.on('warning', hear)
  try {
    await act()
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('warning', hear)
  }
  return texts
}

function messageOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    assert.ok(error instanceof MillraceError || error instanceof MillraceLimited, String(error))
    return (error as Error).message
  }
  return assert.unreachable('nothing was thrown') as never
}

const down: Values = {
  read: () => Promise.reject(new Error('down')),
  swap: async () => true,
}

/** Each returns the texts in which it shows what an attacker wrote. */
const SHOWN: Record<string, (text: string) => Promise<readonly string[]> | readonly string[]> = {
  'the key of events': async (text) => {
    const limiter = createLimiter(MINUTE)
    limiter.check(text)
    const messages = await heard('millrace:limited', () => limiter.check(text))
    return messages.map(({ key }) => key as string)
  },
  'the key of a blocked one': async (text) => {
    const limiter = createLimiter(MINUTE)
    limiter.block(text, '1m')
    return (await heard('millrace:blocked', () => limiter.check(text))).map(({ key }) => key as string)
  },
  'the key of a changed policy': async (text) => {
    const key = text.slice(0, 256)
    const config = memoryConfig()
    const limiter = createLimiter({ config, default: MINUTE })
    await limiter.checkAsync(key)
    const messages = await heard('millrace:policy-changed', async () => {
      await config.put(key, { limit: 9, window: '1m' })
      await new Promise((resolve) => setImmediate(resolve))
    })
    await limiter.close()
    return messages.map((message) => message.key as string)
  },
  'rows of top': (text) => {
    const limiter = createLimiter(MINUTE)
    limiter.top({ by: 'refused' })
    limiter.check(text, 2)
    return limiter.top({ by: 'refused' }).map(({ key }) => key)
  },
  'errors about a value': (text) => {
    const limiter = createLimiter(MINUTE)
    return [
      messageOf(() => createLimiter({ limit: text, window: '1m' } as never as LimiterOptions)),
      messageOf(() => createLimiter({ limit: 1, window: text } as never as LimiterOptions)),
      messageOf(() => limiter.check([text] as never)),
      messageOf(() => limiter.check('key', text as never)),
      messageOf(() => limiter.update(text, { limit: 1 })),
      messageOf(() => limiter.check(`${text}${'x'.repeat(65_536)}`)),
    ]
  },
  'errors about a name': (text) => {
    const limiter = createLimiter(MINUTE)
    const name = text.slice(0, 256)
    return [
      messageOf(() => createLimiter({ ...MINUTE, [name]: 1 } as never)),
      messageOf(() => limiter.check('key', 1, { [name]: 1 } as never)),
      messageOf(() => rateLimit({ ...MINUTE, routes: { [`GET /${name}`]: 1 } } as never)),
    ]
  },
  'the error of a refusal': (text) => {
    const limiter = createLimiter({ ...MINUTE, name: text.slice(0, 256) })
    return [messageOf(() => limiter.checkOrThrow('key', 2))]
  },
  'warnings of an outage': async (text) => {
    const prefix = text.slice(0, 64).replace(/[{}]/g, '')
    const limiter = createBackendLimiter({ ...MINUTE, values: down, source: 'own', prefix })
    const texts = await warned('MILLRACE_OUTAGE', () => limiter.check('key'))
    await limiter.close()
    return texts
  },
  'warnings about a policy': async (text) => {
    const fails = () => Promise.reject(new Error(text))
    const broken = new Proxy(memoryConfig(), {
      get(store, name) {
        const value: unknown = store[name as keyof typeof store]
        if (name === 'find') return fails
        if (name === 'findNow') return undefined
        return typeof value === 'function' ? value.bind(store) : value
      },
    })
    const limiter = createLimiter({ config: broken, default: MINUTE })
    const texts = await warned('MILLRACE_CONFIG', () => limiter.checkAsync(text))
    await limiter.close()
    return texts
  },
  'warnings about a request': async (text) => {
    const limited = rateLimit({
      ...MINUTE,
      key: () => {
        throw new Error(`no user ${text.slice(0, 1_000)}`)
      },
    })
    const server = createServer((request, response) => limited(request, response, () => response.end()))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const texts = await warned('MILLRACE_UNDECIDED', async () =>
      (await fetch(`http://127.0.0.1:${port}`)).text(),
    )
    server.close()
    await limited.close()
    return texts.map((each) => each.replace(/\n +at .*/g, '')) // without the frames of the stack
  },
}

/** A text that is refused is shown in the error. */
async function shownOf(where: string, text: string): Promise<readonly string[]> {
  try {
    return await SHOWN[where]!(text)
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return [error.message]
  }
}

for (const where of Object.keys(SHOWN)) {
  for (const [what, text] of Object.entries(HOSTILE)) {
    test(`${what} of others in ${where}`, async () => {
      const shown = await shownOf(where, text)
      assert.ok(shown.length > 0, 'nothing was shown')
      for (const each of shown) assertInert(each)
    })
  }
}

test.run()
