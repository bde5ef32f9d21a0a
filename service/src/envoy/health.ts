// Health checks by gRPC (grpc.health.v1).
import type { ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js'
import { BYTES, Reader, WireError, Writer } from './protobuf.js'

const SERVING = 1
const NOT_SERVING = 2
const SERVICE_UNKNOWN = 3
type Status = typeof SERVING | typeof NOT_SERVING | typeof SERVICE_UNKNOWN

const NOT_FOUND = 5
const INVALID_ARGUMENT = 3
/** How often a watched state is looked at. */
const WATCH_MS = 1_000

const asBytes = (message: Buffer): Buffer => message
const methodOf = (name: string, responseStream: boolean) => ({
  path: `/grpc.health.v1.Health/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: asBytes,
  requestDeserialize: asBytes,
  responseSerialize: asBytes,
  responseDeserialize: asBytes,
})

export const HEALTH = { Check: methodOf('Check', false), Watch: methodOf('Watch', true) }

/** @param service its name; '' is the server as a whole @param isReady whether it should be sent requests */
export function healthOf(service: string, isReady: () => Promise<boolean>) {
  const statusOf = async (asked: string): Promise<Status> => {
    if (asked !== '' && asked !== service) return SERVICE_UNKNOWN
    return (await isReady()) ? SERVING : NOT_SERVING
  }
  return {
    Check(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void {
      const asked = serviceIn(call.request)
      if (asked === undefined) {
        answer({ code: INVALID_ARGUMENT, details: 'no HealthCheckRequest' })
        return
      }
      void statusOf(asked).then((status) => {
        if (status === SERVICE_UNKNOWN) answer({ code: NOT_FOUND, details: 'no such service' })
        else answer(null, messageOf(status))
      })
    },
    Watch(call: ServerWritableStream<Buffer, Buffer>): void {
      const asked = serviceIn(call.request)
      if (asked === undefined) {
        call.emit('error', { code: INVALID_ARGUMENT, details: 'no HealthCheckRequest' })
        return
      }
      let told: Status | undefined
      const tell = async (): Promise<void> => {
        const status = await statusOf(asked)
        if (status === told || call.cancelled) return
        told = status
        call.write(messageOf(status))
      }
      void tell()
      const timer = setInterval(() => void tell(), WATCH_MS)
      call.on('cancelled', () => clearInterval(timer))
      call.on('close', () => clearInterval(timer))
    },
  }
}

/** Undefined for bytes that are no HealthCheckRequest. */
function serviceIn(message: Buffer): string | undefined {
  try {
    const reader = new Reader(message)
    let service = ''
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === 8 + BYTES) service = reader.text()
      else reader.skip(tag)
    }
    return service
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

function messageOf(status: Status): Buffer {
  const writer = new Writer()
  writer.uint(1, status)
  return writer.finish()
}
