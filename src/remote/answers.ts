// What a server answers instead of a reply, and what is done about each. One table for all clients.
import { messageOf } from './last-error.js'

/**
 * - `'learn'`: the script goes out again, with its source.
 * - `'again'`: the call goes out again after a moment, to the node that owns the slot then.
 * - `'reconnect'`: the call fails. The next ones go by a new connection, since another server may have the address by
 *   now, or to the nodes that own the slots of a Cluster now.
 * - `'look'`: the call fails, and the owners of the slots of a Cluster are asked for.
 * - `'wait'`: the call fails. The server goes on answering so until someone or something ends that.
 */
type Remedy = 'learn' | 'again' | 'reconnect' | 'look' | 'wait'

export interface Answer {
  readonly remedy: Remedy
  /** What would be right, for an error. */
  readonly expected: string
  /** Whether the server gives it also after it has run a part of a script. */
  readonly mayBeRun?: true
  /** Whether no waiting ends it by itself, so that `ready` rejects. */
  readonly isUnwelcome?: true
}

const PRIMARY = 'a client of the primary'
const OWNER = 'a client of the node that owns the slot, as a client of the Cluster is'
const PASSWORD = 'a user and a password that the server accepts'

/** By the first word of an answer, or by its meaning if that is `ERR`. */
export const ANSWERS: Readonly<Record<string, Answer>> = {
  NOSCRIPT: { remedy: 'learn', expected: 'a server that takes the source of the script' },
  MOVED: { remedy: 'again', expected: OWNER },
  ASK: { remedy: 'again', expected: OWNER },
  TRYAGAIN: { remedy: 'again', expected: 'a slot whose keys are on one node' },
  READONLY: { remedy: 'reconnect', expected: PRIMARY },
  MASTERDOWN: { remedy: 'reconnect', expected: PRIMARY },
  NOAUTH: { remedy: 'reconnect', expected: PASSWORD, isUnwelcome: true },
  WRONGPASS: { remedy: 'wait', expected: PASSWORD, isUnwelcome: true },
  NOPERM: {
    remedy: 'wait',
    expected: 'a user who may run the script on keys of the prefix',
    isUnwelcome: true,
  },
  CLUSTERDOWN: { remedy: 'look', expected: 'a Cluster that serves all slots' },
  CROSSSLOT: { remedy: 'wait', expected: OWNER },
  LOADING: { remedy: 'wait', expected: 'a server that has loaded its data' },
  OOM: { remedy: 'wait', expected: 'a server with free memory' },
  MISCONF: { remedy: 'wait', expected: 'a server that can save its data' },
  NOREPLICAS: { remedy: 'wait', expected: 'as many replicas as min-replicas-to-write asks for' },
  BUSY: { remedy: 'wait', expected: 'a server that no long script blocks' },
  UNKILLABLE: { remedy: 'wait', expected: 'a server that no long script blocks', mayBeRun: true },
  EXECABORT: { remedy: 'wait', expected: 'a transaction that the server runs' },
  UNKNOWN: {
    remedy: 'wait',
    expected: 'a server that has the commands of the script, by their own names',
    mayBeRun: true,
    isUnwelcome: true,
  },
  DENIED: { remedy: 'wait', expected: 'a server that admits this address', isUnwelcome: true },
}

/** Those of a decision service: see `client/wire.ts`. */
export const SERVICE_ANSWERS: Readonly<Record<string, Answer>> = {
  UNAUTHORIZED: { remedy: 'wait', expected: 'a token that the service knows', isUnwelcome: true },
  FORBIDDEN: { remedy: 'wait', expected: 'a token with the scope of the call', isUnwelcome: true },
  UNDECIDED: { remedy: 'wait', expected: 'an engine whose store answers' },
  UNAVAILABLE: { remedy: 'wait', expected: 'an engine that can decide', mayBeRun: true },
  HUNGUP: {
    remedy: 'wait',
    expected: 'an engine that takes the certificate of this client',
    mayBeRun: true,
    isUnwelcome: true,
  },
  FOREIGN: {
    remedy: 'wait',
    expected: 'the address of a decision service',
    mayBeRun: true,
    isUnwelcome: true,
  },
}

/** An answer that is none of these: nobody knows what the server has run. */
const OTHER: Answer = { remedy: 'wait', expected: 'a server that runs the script', mayBeRun: true }

/** The first word of the answer of a server; undefined for an error of a connection. */
export function codeOf(error: unknown): string | undefined {
  const message = messageOf(error)
  // Of a user who may not run a command of the script, or not with this key: Redis 6 and 7.0, then Valkey and later.
  if (/^ERR .*(The user executing the script can't|ACL failure in script: )/.test(message)) return 'NOPERM'
  // Of a command that a server does not have, or has by another name.
  if (/^ERR (.* )?unknown (Redis )?command/i.test(message)) return 'UNKNOWN'
  // Of a Cluster that is down, but may be read.
  if (/^ERR .*a write command while the cluster is down/.test(message)) return 'CLUSTERDOWN'
  // Some say no more of a wrong password.
  if (/^ERR (invalid password|AUTH|Client sent AUTH)\b/.test(message)) return 'WRONGPASS'
  // Before Redis 7, an answer to a command of the script is behind the line of the script.
  const [, inner] = /^ERR Error running script .*@user_script: ?\d+: -([A-Z]+) /.exec(message) ?? []
  // ioredis follows so many redirections of a Cluster, and no more.
  const [, last] = /^Too many Cluster redirections\. Last error: \w+: ([A-Z]+) /.exec(message) ?? []
  return inner ?? last ?? /^([A-Z]+) /.exec(message)?.[1]
}

/** What is done about an answer; undefined for an error of a connection. */
export function answerOf(error: unknown): Answer | undefined {
  const code = codeOf(error)
  if (code === undefined) return undefined
  return ANSWERS[code] ?? SERVICE_ANSWERS[code] ?? OTHER
}

/**
 * Codes of errors of Node.js by which a TLS connection fails for a certificate, or for a server that speaks no TLS.
 */
const TLS_CODE =
  /^(CERT_|ERR_TLS_CERT_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_CERT_|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|EPROTO$)/

/** The code of an error by which TLS does not trust the server, or the server this process. */
export function tlsCodeOf(error: unknown): string | undefined {
  const { code } = Object(error) as { code?: unknown }
  return typeof code === 'string' && TLS_CODE.test(code) ? code : undefined
}

/** Whether no waiting ends a failure by itself: a wrong password, a user without a right, a certificate. */
export const isUnwelcome = (error: unknown): boolean =>
  answerOf(error)?.isUnwelcome === true || tlsCodeOf(error) !== undefined
