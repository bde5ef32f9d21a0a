/** Slots of a Cluster: each key is in one of them, and each slot is on one primary. */
const SLOTS = 16_384

/** CRC-16/XMODEM, polynomial 0x1021, of each byte. */
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)
  return crc
})

/**
 * The slot of a name on Redis: that of the text in its first braces, or of the whole name, as the specification of
 * Redis Cluster has it.
 */
export function slotOf(name: string): number {
  const from = name.indexOf('{') + 1
  const to = from === 0 ? -1 : name.indexOf('}', from)
  const hashed = Buffer.from(to > from ? name.slice(from, to) : name)
  let crc = 0
  for (const byte of hashed) crc = ((crc << 8) & 0xff00) ^ CRC16[(crc >> 8) ^ byte]!
  return crc % SLOTS
}

/** Divides names into groups of one slot, of at most `most` names each: the indices of each group, in order. */
export function divideBySlot(names: readonly string[], most: number): number[][] {
  const groups: number[][] = []
  const latest = new Map<number, number[]>()
  for (const [i, name] of names.entries()) {
    const slot = slotOf(name)
    const group = latest.get(slot)
    if (group !== undefined && group.length < most) group.push(i)
    else {
      const own = [i]
      latest.set(slot, own)
      groups.push(own)
    }
  }
  return groups
}
