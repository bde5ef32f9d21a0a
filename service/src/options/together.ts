// What options mean together.
import { isLoopback } from '../security/callers.js'
import { countsPlace, redisUrlsOf } from '../stores/addresses.js'
import { rulesOf } from '../stores/limiters.js'
import { isOfOneMachine, policiesAddress } from '../stores/policies.js'
import { OptionError } from './option.js'
import type { Settings } from './table.js'

/** @throws OptionError for options that are wrong together */
export function checkTogether(settings: Settings, hasLimiters: boolean): void {
  const { host, tokens, tlsCert, tlsKey, tlsClientCa, counts, countsBefore, policies } = settings
  if (!hasLimiters) rulesOf(settings)
  countsPlace(counts)
  if (countsBefore !== undefined) {
    redisUrlsOf(countsBefore, 'countsBefore')
    redisUrlsOf(counts, 'counts')
  }
  if (policies !== undefined) policiesAddress(policies)
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new OptionError(
      `${tlsCert ? 'tlsKey' : 'tlsCert'}: expected a file beside ${tlsCert ? 'tlsCert' : 'tlsKey'}`,
    )
  if (tlsClientCa !== undefined && tlsCert === undefined)
    throw new OptionError('tlsClientCa: expected tlsCert and tlsKey beside it')
  checkEnvoy(settings)
  if (!isLoopback(host) && tokens.length === 0 && tlsCert === undefined)
    throw new OptionError(
      `host: expected tokens or TLS for ${JSON.stringify(host)}, which other machines reach, got neither (127.0.0.1 needs none)`,
    )
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/

function checkEnvoy({ envoyConfig, grpcPort, envoyDecide, envoyHeaders, counts, onOutage }: Settings): void {
  if (envoyConfig.length === 0) {
    if (grpcPort === undefined) return
    throw new OptionError('grpcPort: expected envoyConfig beside it')
  }
  if (
    envoyHeaders.length > 0 &&
    (envoyHeaders.length !== 3 || !envoyHeaders.every((name) => HEADER_NAME.test(name)))
  )
    throw new OptionError(
      `envoyHeaders: expected three names of headers, or none, got ${JSON.stringify(envoyHeaders.join(','))}`,
    )
  if (envoyDecide === 'each') return
  const { kind } = countsPlace(counts)
  if (kind === 'memcached')
    throw new OptionError(
      'envoyDecide: expected each with counts in Memcached, which decides no two keys together',
    )
  if (kind === 'redis' && onOutage === 'local')
    throw new OptionError('envoyDecide: expected each beside onOutage: local, which shares no several keys')
}

/** What is allowed, and likely to surprise. */
export function warningsOf(
  { signingKeys, counts, policies }: Settings,
  isShared: boolean,
  kind: Parameters<typeof isOfOneMachine>[0] | undefined,
): readonly string[] {
  const warnings: string[] = []
  if (signingKeys.length === 0)
    warnings.push(
      'signingKeys: none is configured, so a random key signs the tokens of decisions: other engines, and this one after a restart, do not take them',
    )
  if (isShared && kind !== undefined && isOfOneMachine(kind) && !counts.startsWith('file:'))
    warnings.push(
      `policies: ${policies} is a file of this machine, but the counts are shared: engines of other machines need the same file`,
    )
  return warnings
}
