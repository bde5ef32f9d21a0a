// The client by mutual TLS: which certificates of it an engine takes, and which of an engine it trusts.
import { readFileSync } from 'node:fs'
import { serve } from 'millrace-service'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { makeCertificate } from '../service/certificates.js'
import { temporaryFolder } from '../service/folder.js'
import { clientOf, QUIET } from './support.js'

const folder = temporaryFolder()
test.after(() => folder.remove())

makeCertificate(folder, 'authority')
makeCertificate(folder, 'foreign')
makeCertificate(folder, 'server', 'authority')
makeCertificate(folder, 'client', 'authority')

const read = (file: string) => readFileSync(folder.path(file))
const pairOf = (name: string) => ({ cert: read(`${name}.pem`), key: read(`${name}.key`) })
const ca = read('authority.pem')

test('mutual TLS: the certificate of the authority is answered, none or a foreign one is an outage', async () => {
  const { url, close } = await serve({
    ...{ ...QUIET, limit: '5/1m', port: 0 },
    tlsCert: folder.path('server.pem'),
    tlsKey: folder.path('server.key'),
    tlsClientCa: folder.path('authority.pem'),
  })
  const right = clientOf({ url, tls: { ca, ...pairOf('client') } })
  await right.ready()
  assert.equal([(await right.check('a', 2)).remaining, right.rules[0]!.limit], [3, 5])
  await right.close()
  const wrong = {
    'no certificate': { ca },
    'a foreign certificate': { ca, ...pairOf('foreign') },
    'an engine that is not trusted': pairOf('client'),
    'an engine of another authority': { ca: read('foreign.pem'), ...pairOf('client') },
    'an engine with another name': { ca, ...pairOf('client'), servername: 'limits.example' },
  }
  for (const [name, tls] of Object.entries(wrong)) {
    const limiter = clientOf({ url, tls })
    const { allowed, source } = await limiter.check('a')
    assert.equal([allowed, source], [false, 'outage'], name)
    assert.ok((await limiter.stats()).lastFailure, name)
    const error = await limiter.ready().catch((reason) => reason)
    assert.is(error?.code, 'ERR_MILLRACE_OUTAGE', `${name}: ready ends`)
    assert.match(error.expected, /certificate/, name)
    await limiter.close()
  }
  const again = clientOf({ url, tls: { ca, ...pairOf('client') } })
  assert.is((await again.check('a')).remaining, 2, 'the others have charged nothing')
  await again.close()
  await close()
})

test.run()
