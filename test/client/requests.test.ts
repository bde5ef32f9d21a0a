// What the client sends: one request for a turn, what is sent again, and what it makes of wrong answers.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { MillraceError } from 'millrace'
import type { ClientOptions } from 'millrace/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SERVICE_ANSWERS } from '#millrace/remote/answers.js'
import { ADMITTED, answerJson, clientOf, type Got, limitersOf, type Odd, oddServer } from './support.js'

/** Answers each request that decides as a service would, with a decision for each key. */
function decide({ path, body }: Got, respond: (json: unknown) => void, idempotency = false): void {
  if (path === '/v1/limiters') respond(limitersOf(idempotency))
  else if (body.checks === undefined) respond(ADMITTED)
  else respond({ decisions: body.checks.map(() => ADMITTED) })
}

async function asking(
  answer: Parameters<typeof oddServer>[0],
  act: (server: Odd, limiter: ReturnType<typeof clientOf>) => Promise<void>,
  options: Partial<ClientOptions> = {},
): Promise<void> {
  const server = await oddServer(answer)
  const limiter = clientOf({ url: server.url, ...options })
  try {
    await act(server, limiter)
  } finally {
    await limiter.close()
    await server.close()
  }
}

const sound: Parameters<typeof oddServer>[0] = (got, response) =>
  decide(got, (json) => answerJson(response, json))
const decisions = ({ got }: Odd): readonly Got[] => got.filter(({ path }) => path !== '/v1/limiters')

test('what is asked in one turn is one request, peeks another', () =>
  asking(sound, async (server, limiter) => {
    await limiter.ready()
    const keys = ['a', 'b', 'c']
    const all = [...keys.map((key) => limiter.check(key)), limiter.checkMany(['d', 'e'], [2, 3])]
    const peeks = keys.map((key) => limiter.peek(key))
    await Promise.all([...all, ...peeks])
    const sent = decisions(server).map(({ path, body }) => [path, body.checks.length])
    assert.equal(sent.sort(), [
      ['/v1/check', 5],
      ['/v1/peek', 3],
    ])
    const checked = decisions(server).find(({ path }) => path === '/v1/check')!.body
    assert.equal(
      checked.checks.map(({ key, cost }: { key: string; cost: number }) => `${key} ${cost}`),
      ['a 1', 'b 1', 'c 1', 'd 2', 'e 3'],
    )
  }))

for (const algorithm of [undefined, 'sliding-log', 'token-bucket'] as const) {
  for (const unit of [undefined, 10]) {
    test(`a rule of the service without a limit is taken: ${algorithm} ${unit}`, () => {
      const shown = limitersOf(false)
      const [rule] = shown.limiters[0]!.rules
      const rules = [{ ...rule, limit: 'Infinity', algorithm, unit }, rule && { ...rule, name: 'other' }]
      return asking(
        ({ path }, response) =>
          answerJson(
            response,
            path === '/v1/limiters' ? { limiters: [{ name: 'default', rules }] } : ADMITTED,
          ),
        async (server, limiter) => {
          await limiter.ready()
          assert.equal(
            limiter.rules.map(({ name, windowMs }) => [name, windowMs]),
            [
              ['default', 60_000],
              ['other', 60_000],
            ],
          )
          assert.is((await limiter.check('a')).source, 'service')
          await server.close()
          const alone = await limiter.check('a')
          assert.equal([alone.allowed, alone.source], [true, 'local'])
        },
        { onOutage: 'local', nodes: 2 },
      )
    })
  }
}

test('a turn of more than 1,024 keys is several requests, in order', () =>
  asking(sound, async (server, limiter) => {
    const keys = Array.from({ length: 2_500 }, (_, i) => `key ${i}`)
    const batch = await limiter.checkMany(keys)
    assert.ok(batch.allowed.every((allowed) => allowed === 1))
    const sizes = decisions(server).map(({ body }) => body.checks.length)
    assert.equal(sizes.sort(), [1_024, 1_024, 452].sort())
  }))

test('one key is sent without a list, with the name of the limiter and the token', () =>
  asking(
    (got, response) =>
      decide(got, (json) => answerJson(response, got.path === '/v1/limiters' ? named(json) : json)),
    async (server, limiter) => {
      await limiter.check('a', 2)
      const [{ body, headers }] = decisions(server) as [Got]
      assert.equal(body, { key: 'a', limiter: 'login', cost: 2, token: true })
      assert.is(headers.authorization, 'Bearer secret-1')
      await limiter.check('a', 2)
      assert.is(
        decisions(server)[1]!.headers.authorization,
        'Bearer secret-2',
        'the function is asked each time',
      )
    },
    { limiter: 'login', rules: [{ limit: 5, window: '1m' }], token: counting() },
  ))

/** The limiters with another name. */
const named = (json: unknown) => {
  const { limiters, ...others } = json as ReturnType<typeof limitersOf>
  return { limiters: limiters.map((limiter) => ({ ...limiter, name: 'login' })), ...others }
}

/** A token that changes with each request that decides; the first one may be that for the rules. */
function counting(): () => string {
  let asked = -1
  return () => `secret-${++asked === 0 ? 1 : asked}`
}

test('requests follow each other on one connection', async () => {
  const ports = new Set<number>()
  await asking(
    (got, response) => {
      ports.add(response.req.socket.remotePort!)
      decide(got, (json) => answerJson(response, json))
    },
    async (_, limiter) => {
      await limiter.ready()
      for (let i = 0; i < 10; i++) await limiter.check('a')
      assert.is(ports.size, 1)
    },
  )
})

/** Cuts the first connection on which a request of this path has come, after it has been read. */
function cutting(path: string, idempotency = false): Parameters<typeof oddServer>[0] {
  let cuts = 0
  return (got, response) => {
    if (got.path === path && ++cuts === 1) response.destroy()
    else decide(got, (json) => answerJson(response, json), idempotency)
  }
}

test('a peek whose connection is lost is sent again', () =>
  asking(cutting('/v1/peek'), async (server, limiter) => {
    assert.is((await limiter.peek('a')).allowed, true)
    assert.is(decisions(server).length, 2)
    assert.is((await limiter.stats()).outages, 0)
  }))

test('a check whose connection is lost is not sent again, and is an outage of this call', () =>
  asking(cutting('/v1/check'), async (server, limiter) => {
    const lost = await limiter.check('a')
    assert.equal([lost.allowed, lost.source], [false, 'outage'])
    assert.is(decisions(server).length, 1)
    assert.is((await limiter.check('a')).allowed, true)
    assert.is((await limiter.stats()).outages, 1)
  }))

test('a check is sent again with its Idempotency-Key, where the service keeps those', () =>
  asking(
    cutting('/v1/check', true),
    async (server, limiter) => {
      await limiter.ready()
      assert.is((await limiter.check('a')).allowed, true)
      const keys = decisions(server).map(({ headers }) => headers['idempotency-key'])
      assert.is(keys.length, 2)
      assert.is(keys[0], keys[1])
      assert.ok(keys[0])
      await limiter.check('a')
      assert.is.not(decisions(server)[2]!.headers['idempotency-key'], keys[0], 'another call has another key')
    },
    { retryCharges: true },
  ))

test('without such a service, nothing that charges is sent again', () =>
  asking(
    cutting('/v1/check', false),
    async (server, limiter) => {
      await limiter.ready()
      assert.is((await limiter.check('a')).source, 'outage')
      const [{ headers }] = decisions(server) as [Got]
      assert.equal([decisions(server).length, headers['idempotency-key']], [1, undefined])
    },
    { retryCharges: true },
  ))

test('an answer that says nothing about the request is an outage, whatever its form', async () => {
  const answers: Record<string, Parameters<typeof oddServer>[0]> = {
    UNAVAILABLE: (_, response) => response.writeHead(502).end('<html>Bad Gateway</html>'),
    'UNAVAILABLE ': (_, response) => response.writeHead(429).end('slow down'),
    UNAUTHORIZED: (_, response) => answerJson(response, { detail: 'no token' }, 401),
    FORBIDDEN: (_, response) => answerJson(response, { detail: 'no scope' }, 403),
    UNDECIDED: (_, response) =>
      answerJson(response, { code: 'ERR_MILLRACE_UNDECIDED', mayBeCharged: false }, 503),
    FOREIGN: (_, response) => response.writeHead(200).end('hello'),
    'FOREIGN ': (_, response) => answerJson(response, { allowed: true }),
    'FOREIGN  ': (_, response) => answerJson(response, { ...ADMITTED, remaining: -1 }),
    'FOREIGN   ': (_, response) => response.writeHead(404).end('no such page'),
    'FOREIGN    ': (_, response) => answerJson(response, { code: 'BadRequest' }, 400),
    'FOREIGN     ': (_, response) => answerJson(response, { code: 'ERR_MILLRACE_NOT_FOUND' }, 404),
    'FOREIGN      ': (_, response) => answerJson(response, { decisions: [ADMITTED] }),
  }
  const words = new Set(Object.keys(answers).map((word) => word.trim()))
  const inHttp = Object.keys(SERVICE_ANSWERS).filter((word) => word !== 'HUNGUP') // that is the end of a connection
  assert.equal([...words].sort(), inHttp.sort())
  for (const [word, answer] of Object.entries(answers)) {
    await asking(answer, async (_, limiter) => {
      const { allowed, source } = await limiter.check('a')
      assert.equal([word, allowed, source], [word, false, 'outage'])
      const { lastFailure, outages } = await limiter.stats()
      assert.match(lastFailure!, new RegExp(`^${word.trim()} `))
      assert.is(outages, 1)
    })
  }
})

test('a redirection is not followed: no other host gets the token', async () => {
  const other = await oddServer(sound)
  await asking(
    (got, response) => response.writeHead(307, { location: `${other.url}${got.path}` }).end(),
    async (_, limiter) => {
      assert.is((await limiter.check('a')).source, 'outage')
      assert.match((await limiter.stats()).lastFailure!, /^FOREIGN status 307/)
    },
  )
  assert.is(other.got.length, 0)
  await other.close()
})

test('an answer of which a part comes, or that is for other keys, decides none of them', async () => {
  const answers: readonly Parameters<typeof oddServer>[0][] = [
    (_, response) => {
      response.writeHead(200, { 'content-length': 1_000 }).write('{"decisions":[', () => response.destroy())
    },
    (_, response) => response.writeHead(200).end('{"decisions":['),
    (_, response) => answerJson(response, ADMITTED),
    (_, response) => answerJson(response, { decisions: [ADMITTED] }),
    (_, response) => answerJson(response, { decisions: [ADMITTED, ADMITTED, ADMITTED] }),
    (_, response) => answerJson(response, { decisions: [ADMITTED, null] }),
  ]
  for (const answer of answers) {
    await asking(answer, async (_, limiter) => {
      const decided = await Promise.all(['a', 'b'].map((key) => limiter.check(key)))
      assert.equal(
        decided.map(({ source }) => source),
        ['outage', 'outage'],
      )
    })
  }
})

test('limiters that are none are an outage, and end no process', async () => {
  const rejections: unknown[] = []
  const note = (reason: unknown) => void rejections.push(reason)
  process.on('unhandledRejection', note)
  const lists = [null, [null], [{ name: 'default' }], [{ name: 'default', rules: [null] }]]
  for (const limiters of lists) {
    await asking(
      (got, response) =>
        got.path === '/v1/limiters' ? answerJson(response, { limiters }) : answerJson(response, ADMITTED),
      async (_, limiter) => {
        assert.is((await limiter.check('a')).allowed, true)
        const error = await limiter.ready().catch((thrown: unknown) => thrown as MillraceError)
        assert.is((error as MillraceError).code, 'ERR_MILLRACE_OUTAGE')
      },
    )
  }
  process.off('unhandledRejection', note)
  assert.equal(rejections, [])
})

test('after a try that was lost, no answer to another says that nothing was charged', async () => {
  const answers = [
    [503, { code: 'ERR_MILLRACE_UNDECIDED', mayBeCharged: false }],
    [409, { code: 'ERR_MILLRACE_IDEMPOTENCY_PENDING' }],
    [401, { code: 'ERR_MILLRACE_UNAUTHORIZED' }],
  ] as const
  for (const [status, problem] of answers) {
    let tries = 0
    await asking(
      (got, response) => {
        if (got.path === '/v1/limiters') answerJson(response, limitersOf(true))
        else if (++tries === 1) response.destroy()
        else answerJson(response, problem, status)
      },
      async (_, limiter) => {
        await limiter.ready()
        const error = await limiter.penalize('a', 1).catch((thrown: unknown) => thrown)
        const { code, mayBeCharged } = error as MillraceError
        assert.equal([tries, code, mayBeCharged], [2, 'ERR_MILLRACE_OUTAGE', true], `${status}`)
      },
      { retryCharges: true },
    )
  }
})

test('`ready` rejects what no waiting ends: a wrong token, another server, no such limiter', async () => {
  const refusing: readonly Parameters<typeof oddServer>[0][] = [
    (_, response) => answerJson(response, {}, 401),
    (_, response) => answerJson(response, {}, 403),
    (_, response) => response.writeHead(404).end(),
  ]
  const codeOf = (error: unknown) => (error as MillraceError).code
  for (const answer of refusing) {
    await asking(answer, async (_, limiter) => {
      assert.is(await limiter.ready().then(() => 'ready', codeOf), 'ERR_MILLRACE_OUTAGE')
    })
  }
  await asking(
    sound,
    async (_, limiter) => {
      const error = await limiter.ready().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      assert.instance(error, MillraceError)
      const { code, option, expected } = error as MillraceError
      assert.equal([code, option], ['ERR_MILLRACE_INVALID_OPTION', 'limiter'])
      assert.match(expected, /'default'/)
    },
    { limiter: 'other' },
  )
})

test('an error about one key of a request is that key’s alone', () =>
  asking(
    (got, response) => {
      if (got.path === '/v1/limiters') return answerJson(response, limitersOf(false))
      const problem = {
        status: 400,
        code: 'ERR_MILLRACE_INVALID_COST',
        field: 'cost',
        expected: 'less',
        detail: 'too much',
      }
      const undecided = { status: 503, code: 'ERR_MILLRACE_UNDECIDED', mayBeCharged: false }
      answerJson(response, { decisions: [ADMITTED, { error: problem }, { error: undecided }, ADMITTED] })
    },
    async (_, limiter) => {
      const asked = ['a', 'b', 'c', 'd'].map((key) => limiter.check(key))
      const [a, b, c, d] = await Promise.allSettled(asked)
      assert.is(a?.status === 'fulfilled' && a.value.allowed, true)
      assert.is(d?.status === 'fulfilled' && d.value.allowed, true)
      assert.is(c?.status === 'fulfilled' && c.value.source, 'outage')
      const { code, option, value } = (b as PromiseRejectedResult).reason as MillraceError
      assert.equal([code, option, value], ['ERR_MILLRACE_INVALID_COST', 'cost', 1])
    },
  ))

test('after the deadline the connection is ended, and the call is decided without the service', async () => {
  const seen: string[] = []
  const note = (message: unknown) => void seen.push((message as { store: string }).store)
  subscribe('millrace:outage', note)
  let ended: () => void = () => {}
  const end = new Promise<void>((resolve) => {
    ended = resolve
  })
  await asking(
    (got, response) => {
      if (got.path === '/v1/limiters') answerJson(response, limitersOf(false))
      else response.on('close', () => ended())
    },
    async (_, limiter) => {
      const { allowed, source } = await limiter.check('a')
      assert.equal([allowed, source], [true, 'outage'])
      await end
      const error = await limiter.penalize('a', 1).catch((thrown: unknown) => thrown as MillraceError)
      assert.equal(
        [(error as MillraceError).code, (error as MillraceError).mayBeCharged],
        ['ERR_MILLRACE_OUTAGE', true],
      )
      assert.equal(seen, ['service'])
    },
    { onOutage: 'open', deadline: '100ms' },
  )
  unsubscribe('millrace:outage', note)
})

test('a path of the address is put before those of the service', async () => {
  const server = await oddServer((got, response) => {
    if (!got.path.startsWith('/limits/')) return answerJson(response, {}, 404)
    decide({ ...got, path: got.path.slice('/limits'.length) }, (json) => answerJson(response, json))
  })
  const limiter = clientOf({ url: `${server.url}/limits/` })
  await limiter.ready()
  assert.is((await limiter.check('a')).allowed, true)
  await limiter.close()
  await server.close()
})

test.run()
