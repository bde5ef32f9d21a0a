import {
  ADM,
  BUCKETS,
  COUNT,
  HEADER,
  NAMES_AT,
  NODE_COUNT,
  refundsOf,
  type Shape,
  STATE,
} from '#millrace/memory/layout.js'

const FIELDS = ['hi', 'admission', 'tick', 'as-of', 'until']
const EXTRA = ['generation', 'giving']
const STATES = ['FREE', 'CLAIMED', 'NAMED', 'LIVE']
const HEADER_NAMES = new Map<number, string>(Object.entries(HEADER).map(([name, index]) => [index, name]))

/** The name of a word of an arena. */
export function nameOfWord(shape: Shape, index: number): string {
  if (index < NAMES_AT) return HEADER_NAMES.get(index) ?? `header ${index}`
  if (index < shape.waysAt) return `name of way ${index - NAMES_AT}`
  if (index >= shape.extraAt) {
    const extra = index - shape.extraAt
    return `${EXTRA[extra % shape.extraWords]} of way ${Math.floor(extra / shape.extraWords)}`
  }
  const field = (index - shape.waysAt) % shape.wayWords
  const way = Math.floor((index - shape.waysAt) / shape.wayWords)
  const slot = field - BUCKETS
  const part = slot < shape.ring ? `bucket ${slot}` : `node ${slot - shape.ring}`
  return `${FIELDS[field] ?? part} of way ${way}`
}

/** The value of a word of an arena in readable form. */
export function describeWord(shape: Shape, index: number, value: number): string {
  const isCell = index >= shape.waysAt && index < shape.extraAt
  const field = isCell ? (index - shape.waysAt) % shape.wayWords : -1
  if (field === ADM) return `epoch ${value >>> 24} ${STATES[(value & STATE) >>> 22]} total ${value & COUNT}`
  if (field >= BUCKETS + shape.ring) return `lap ${value >>> 24} count ${value & NODE_COUNT}`
  if (field >= BUCKETS) return `lap ${value >>> 24} refunds ${refundsOf(value)} count ${value & COUNT}`
  return String(value)
}
