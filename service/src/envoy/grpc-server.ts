// The gRPC server of an engine. Its connections are accepted here, so that their number has a bound and the files of TLS
// can change; grpc-js gets each one when it is there.
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  status as Status,
  type StatusObject,
  type sendUnaryData,
} from '@grpc/grpc-js'
import type { FastifyBaseLogger } from 'fastify'
import type { Engine } from '../engine.js'
import { problemOf, ServiceError } from '../http/problem.js'
import { isReady } from '../routes/health.js'
import { requireDecide } from '../security/callers.js'
import { tlsOf } from '../security/tls.js'
import { type RateLimitRequest, type RateLimitResponse, readRequest, writeResponse } from './contract.js'
import type { Envoy } from './envoy.js'
import { HEALTH, healthOf } from './health.js'
import { WireError } from './protobuf.js'

const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService'
const METHOD = `/${SERVICE}/ShouldRateLimit`
const KEEP_ALIVE_TIMEOUT_MS = 20_000
/** Of a session: streams, headers and what is not sent yet. */
const SESSION_MEGABYTES = 10
/** A call is answered so much before its deadline, and a quarter of its time at most, if a store is still awaited. */
const MARGIN_MS = 5
const MARGIN_SHARE = 0.25

/** A gRPC server that listens. */
export interface GrpcServer {
  /** Where it answers, such as `127.0.0.1:8081`. */
  readonly address: string
  /** The server of its connections. */
  readonly connections: NetServer
  /** Takes no more connections, and ends those that it has when their calls are answered; after so long in any case. */
  close(timeoutMs: number): Promise<void>
}

/** @throws {Error} for an address that can't be listened on */
export async function openGrpcServer(
  engine: Engine,
  envoy: Envoy,
  log: FastifyBaseLogger,
): Promise<GrpcServer> {
  const { settings } = engine
  const { host, grpcPort, drainTimeout } = settings
  const server = new Server({
    'grpc.max_receive_message_length': settings.maxBody,
    'grpc.max_concurrent_streams': settings.grpcMaxStreams,
    'grpc-node.max_session_memory': SESSION_MEGABYTES,
    'grpc.keepalive_time_ms': settings.keepAlive,
    'grpc.keepalive_timeout_ms': KEEP_ALIVE_TIMEOUT_MS,
    'grpc.enable_channelz': 0,
    ...(settings.grpcConnectionAge > 0 && {
      'grpc.max_connection_age_ms': settings.grpcConnectionAge,
      'grpc.max_connection_age_grace_ms': drainTimeout,
    }),
  })
  server.addService(RATE_LIMIT, { ShouldRateLimit: shouldRateLimit(engine, envoy, log) })
  server.addService(
    HEALTH as ServiceDefinition,
    healthOf(SERVICE, () =>
      isReady(engine).catch((error: Error) => {
        log.error({ stack: error.stack }, 'a health check failed')
        return false
      }),
    ),
  )
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const take = (socket: Socket): void => injector.injectConnection(socket)
  const connections =
    settings.tlsCert === undefined
      ? createServer(take)
      : createTlsServer(
          { ...tlsOf(settings), ALPNProtocols: ['h2'], handshakeTimeout: settings.requestTimeout },
          take,
        )
  connections.maxConnections = settings.maxConnections
  await new Promise<void>((resolve, reject) => {
    connections.once('error', reject)
    connections.listen(grpcPort, host, () => {
      connections.off('error', reject)
      resolve()
    })
  })
  const { address, family, port } = connections.address() as AddressInfo
  return {
    address: `${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    connections,
    async close(timeoutMs) {
      connections.close()
      const cut = setTimeout(() => server.forceShutdown(), timeoutMs)
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()))
      clearTimeout(cut)
    },
  }
}

const asBytes = (message: Buffer): Buffer => message
/** Requests are read by the handler, which says what is wrong with them. */
const RATE_LIMIT: ServiceDefinition = {
  ShouldRateLimit: {
    path: METHOD,
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  },
}

type Call = ServerUnaryCall<Buffer, Buffer>
type Answer = sendUnaryData<Buffer>

function shouldRateLimit({ callers }: Engine, envoy: Envoy, log: FastifyBaseLogger) {
  const { metrics } = envoy
  return (call: Call, answer: Answer): void => {
    const begun = performance.now()
    let isAnswered = false
    const finish = (code: string, send: () => void): void => {
      if (isAnswered) return
      isAnswered = true
      metrics.called(code, performance.now() - begun)
      send()
    }
    const succeed = (response: RateLimitResponse): void => {
      const message = writeResponse(response)
      finish('OK', () => answer(null, message))
    }
    const fail = (error: unknown): void => {
      const { code, details } = statusOf(error)
      if (code === Status.INTERNAL) log.error({ stack: (error as Error).stack }, 'a call failed')
      finish(Status[code], () => answer({ code, details }))
    }
    try {
      const { metadata } = call
      const [authorization] = metadata.get('authorization')
      requireDecide(callers, authorization?.toString(), hostOf(call.getPeer()))
      const response = envoy.decide(requestIn(call.request))
      if (!(response instanceof Promise)) {
        succeed(response)
        return
      }
      const timer = beforeDeadline(call, () => fail(late()))
      const end = () => clearTimeout(timer)
      void response.then(succeed).catch(fail).finally(end)
    } catch (error) {
      fail(error)
    }
  }
}

/** Calls back a little before the deadline of a call. */
function beforeDeadline(call: Call, act: () => void): NodeJS.Timeout | undefined {
  const leftMs = Number(call.getDeadline()) - Date.now()
  if (!Number.isFinite(leftMs)) return undefined
  return setTimeout(act, Math.max(0, leftMs - Math.min(MARGIN_MS, leftMs * MARGIN_SHARE)))
}

const late = (): ServiceError =>
  new ServiceError(
    503,
    'ERR_MILLRACE_UNDECIDED',
    'The store has not answered before the deadline of the call.',
  )

/** @throws ServiceError 400 for bytes that are no RateLimitRequest */
function requestIn(message: Buffer): RateLimitRequest {
  try {
    return readRequest(message)
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    throw new ServiceError(
      400,
      'ERR_MILLRACE_INVALID_BODY',
      `expected a RateLimitRequest, got ${error.message}`,
    )
  }
}

const CODES: Readonly<Record<number, number>> = {
  400: Status.INVALID_ARGUMENT,
  401: Status.UNAUTHENTICATED,
  403: Status.PERMISSION_DENIED,
  503: Status.UNAVAILABLE,
}

function statusOf(error: unknown): Pick<StatusObject, 'code' | 'details'> {
  const { status, code, detail } = problemOf(error)
  return { code: CODES[status] ?? Status.INTERNAL, details: `${code}: ${detail}` }
}

/** The address in `127.0.0.1:4711` or `[::1]:4711`. */
const hostOf = (peer: string): string => peer.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
