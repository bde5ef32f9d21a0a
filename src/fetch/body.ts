const KEPT = new Set(['Blob', 'File', 'FormData', 'URLSearchParams', 'ArrayBuffer', 'SharedArrayBuffer'])
/** A longer body of a `Request` is not kept: it is sent once, as a stream is. */
const MOST_KEPT_BYTES = 64 * 1024 * 1024

/** By the tag: `fetch` of the package undici has classes of its own. */
const tagOf = (body: object) => (body as { readonly [Symbol.toStringTag]?: unknown })[Symbol.toStringTag]

/** Whether a body can be sent again: it is none, or data in memory. A stream and an iterable are used up. */
export function canResend(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === 'string') return true
  return typeof body === 'object' && (ArrayBuffer.isView(body) || KEPT.has(tagOf(body) as string))
}

/**
 * A body as `fetch` takes it when it is called: the caller may change theirs while the call waits. A stream and an
 * async iterable stay what they are. An object without data is its text.
 */
export function takeBody(body: unknown): unknown {
  if (body === null || body === undefined || typeof body === 'symbol') return body // `fetch` refuses a symbol
  if (typeof body !== 'object') return String(body)
  if ('pipe' in body || Symbol.asyncIterator in body || 'getReader' in body) return body
  if (ArrayBuffer.isView(body)) {
    const bytes = new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    return body.buffer instanceof SharedArrayBuffer ? body : bytes.slice()
  }
  const tag = tagOf(body)
  if (tag === 'ArrayBuffer') return (body as ArrayBuffer).slice(0)
  if (tag === 'URLSearchParams') return new URLSearchParams(body as URLSearchParams)
  if (tag === 'FormData') return copyOfForm(body as FormData)
  return KEPT.has(tag as string) ? body : String(body)
}

function copyOfForm(form: FormData): FormData {
  const copy = new (form.constructor as typeof FormData)()
  for (const [name, value] of form) copy.append(name, value as string)
  return copy
}

/** Whether the body of a `Request` is that of data: its stream is one of bytes then, and no user's usually is. */
export function isOfData(body: unknown): boolean {
  try {
    ;(body as ReadableStream).getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false // a stream of other chunks, or one that is in use
  }
}

/** The body of a `Request`, kept while it is sent: a `Request` has it only as a stream. */
export class KeptBody {
  /** All of it; undefined: not yet, or it is too long. */
  bytes: Uint8Array<ArrayBuffer> | undefined

  /** @param copy a second stream of the same body */
  constructor(copy: unknown) {
    this.#read(copy as AsyncIterable<Uint8Array>).catch(() => {
      // the stream that is sent fails, too, and `fetch` rejects with its error
    })
  }

  async #read(copy: AsyncIterable<Uint8Array>): Promise<void> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of copy) {
      length += chunk.length
      if (length > MOST_KEPT_BYTES) return // which ends this stream, not the other
      chunks.push(chunk)
    }
    const bytes = new Uint8Array(length)
    let at = 0
    for (const chunk of chunks) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    this.bytes = bytes
  }
}
