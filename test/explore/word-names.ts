import {
  ADM,
  BUCKETS,
  CELL_RECORD,
  CONVERTING,
  COUNT,
  HEADER,
  HI,
  NAMES_AT,
  NODE_COUNT,
  PAST_WORDS,
  RECORD,
  RECORD_WORDS,
  RECORDS_AT,
  refundsOf,
  type Shape,
  STATE,
} from '#millrace/memory/layout.js'
import { limitIn, recordIn } from '#millrace/memory/records.js'

const FIELDS = ['hi', 'admission', 'tick', 'as-of', 'until']
const EXTRA = ['generation', 'giving']
const PASTS = ['past', 'past-until', 'carried', 'carried-tick']
const STATES = ['FREE', 'CLAIMED', 'NAMED', 'LIVE']
const HEADER_NAMES = new Map<number, string>(Object.entries(HEADER).map(([name, index]) => [index, name]))
const RECORD_NAMES = new Map<number, string>(Object.entries(RECORD).map(([name, index]) => [index, name]))

/** The name of a word of an arena. */
export function nameOfWord(shape: Shape, index: number): string {
  if (index < RECORDS_AT) return HEADER_NAMES.get(index) ?? `header ${index}`
  if (index < NAMES_AT) {
    const word = index - RECORDS_AT
    return `${RECORD_NAMES.get(word % RECORD_WORDS)} of record ${Math.floor(word / RECORD_WORDS)}`
  }
  if (index < shape.waysAt) return `name of way ${index - NAMES_AT}`
  if (index >= shape.pastAt) {
    const past = index - shape.pastAt
    return `${PASTS[past % PAST_WORDS]} of way ${Math.floor(past / PAST_WORDS)}`
  }
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
  if (index === HEADER.CURRENT) return `record ${recordIn(value)} limit ${limitIn(value)}`
  if (field === HI && isCell) {
    const state = (value & CONVERTING) !== 0 ? ', converting' : ''
    return `${value >>> 7} record ${value & CELL_RECORD}${state}`
  }
  if (field === ADM) return `epoch ${value >>> 24} ${STATES[(value & STATE) >>> 22]} total ${value & COUNT}`
  if (field >= BUCKETS + shape.ring) return `lap ${value >>> 24} count ${value & NODE_COUNT}`
  if (field >= BUCKETS) return `lap ${value >>> 24} refunds ${refundsOf(value)} count ${value & COUNT}`
  return String(value)
}
