import { onRefusal } from '../core/channels.js'
import { inert } from '../core/inert.js'

/** The part of `@opentelemetry/api` that knows the active span. */
interface Tracing {
  readonly trace: {
    getActiveSpan():
      | { addEvent(name: string, attributes: Readonly<Record<string, string | number>>): unknown }
      | undefined
  }
}

let observers = 0

/**
 * Adds the event `rate_limited` to the active span for each refusal of this thread, for as long as anything is observed.
 * Without an observer, a decision does nothing for it. Returns a function that ends it.
 */
export function tellSpans({ trace }: Tracing): () => void {
  observers++
  onRefusal((rule, retryAfterMs) => {
    const hasEnd = retryAfterMs < Number.POSITIVE_INFINITY
    trace.getActiveSpan()?.addEvent('rate_limited', {
      'millrace.rule': inert(rule),
      ...(hasEnd ? { 'millrace.retry_after_ms': retryAfterMs } : {}),
    })
  })
  return () => {
    if (--observers === 0) onRefusal(undefined)
  }
}
