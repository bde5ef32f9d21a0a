const KEPT = new Set(['Blob', 'File', 'FormData', 'URLSearchParams'])

/** Whether a body can be sent again: it is none, or data in memory. A stream and an iterable are used up. */
export function canResend(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === 'string') return true
  if (ArrayBuffer.isView(body)) return true
  // By the tag: `fetch` of the package undici has classes of its own.
  const tag = (body as { readonly [Symbol.toStringTag]?: unknown })[Symbol.toStringTag]
  return KEPT.has(tag as string) || body instanceof ArrayBuffer || body instanceof SharedArrayBuffer
}
