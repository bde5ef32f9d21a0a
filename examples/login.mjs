// Limits failed logins, by account and by address. A right password is never counted. An attacker who guesses
// at an account spends the limit that all unknown devices share, and can keep those out. The owner still gets
// in: a device that has once logged in holds a signed cookie, and has a limit of its own.
//
//   node examples/login.mjs
//   curl -i -c jar -b jar http://127.0.0.1:3000/ -d '{"account":"alice","password":"open sesame"}'
//   for i in $(seq 7); do curl -si http://127.0.0.1:3000/ -d '{"account":"alice","password":"?"}' | head -1; done
import { createHmac, randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import { createLimiter, group } from 'millrace'

const byDevice = createLimiter({ limit: 5, window: '15m' })
const byStranger = group({
  address: createLimiter({ limit: 20, window: '1h' }),
  account: createLimiter({ limit: 5, window: '15m' }),
})

const hash = (password) => promisify(scrypt)(password, 'a salt for each account, in earnest', 32)
const passwords = new Map([['alice', await hash('open sesame')]])
const noPassword = randomBytes(32) // compared for unknown accounts, so that they take as long as others
const secret = randomBytes(32) // keep it somewhere: otherwise a restart forgets all devices

const server = createServer((request, response) => {
  login(request, response).catch(() => response.writeHead(400).end())
})

async function login(request, response) {
  const { account, password } = await credentials(request)
  const device = deviceOf(request, account)
  const address = request.socket.remoteAddress ?? 'gone'
  const [limits, keys] = device ? [byDevice, device] : [byStranger, { address, account }]
  // Charged before the password is compared: otherwise a thousand guesses at the same moment would each find
  // that none has failed yet. A refusal charges nothing: repeated requests do not make the wait longer.
  const decision = limits.check(keys)
  if (!decision.allowed) {
    response.setHeader('Retry-After', decision.retryAfterSeconds)
    return response.writeHead(429).end('too many failed logins\n')
  }
  let isWrong = false // stays so if the comparison itself throws: that is not a failed login
  try {
    isWrong = !timingSafeEqual(await hash(password), passwords.get(account) ?? noPassword)
  } finally {
    if (!isWrong) limits.refund(decision)
  }
  if (isWrong) return response.writeHead(401).end('wrong account or password\n')
  response.setHeader('Set-Cookie', `device=${device ?? newDevice(account)}; HttpOnly; SameSite=Strict`)
  response.end(`welcome, ${account}\n`)
}

/** The request's device, if it has logged into this account before. */
function deviceOf(request, account) {
  const [, device, id, mac] = /\bdevice=(([\w-]{36})\.([\w-]{43}))/.exec(request.headers.cookie ?? '') ?? []
  if (device === undefined) return undefined
  return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(id, account))) ? device : undefined
}

function newDevice(account) {
  const id = randomUUID()
  return `${id}.${macOf(id, account)}`
}

function macOf(id, account) {
  return createHmac('sha256', secret).update(`${id} ${account}`).digest('base64url')
}

async function credentials(request) {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk
    if (body.length > 1_000) throw new Error('too long')
  }
  const { account, password } = JSON.parse(body)
  if (typeof account !== 'string' || account === '' || typeof password !== 'string')
    throw new Error('incomplete')
  return { account: account.toLowerCase(), password } // 'Alice' and 'alice' share their tries
}

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
