// The first look at an LMDB file, before LMDB maps it: a page beyond the end of the file ends the process by SIGBUS.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

/** Where a page has its words. `POINTERS` of `LOWER / 2` nodes follow, each the place of a node after `POINTERS`. */
const PAGE = { FLAGS: 18, LOWER: 20, POINTERS: 24 }
const FLAG = { BRANCH: 0x01, META: 0x08, LEAF2: 0x20 }
/** Where a meta page has its words. Each root is the number of a page. */
const META = {
  MAGIC: 24,
  VERSION: 28,
  PAGE_SIZE: 48,
  FREE_ROOT: 88,
  MAIN_ROOT: 136,
  LAST_PAGE: 144,
  TRANSACTION: 152,
  BYTES: 160,
}
/** A node of a branch begins with the number of its page, which takes its flags, too. A key and the data follow. */
const NODE = { FLAGS: 4, KEY_BYTES: 6, KEY: 8 }
/** The data are the number of a page and, after 16 bytes, of pages; or a database, with its root after 40 bytes. */
const DATA = { ON_PAGES: 0x01, DATABASE: 0x02, PAGES: 16, ROOT: 40 }
const MAGIC = 0xbeefc0de
const VERSION = 2
/** How often another process may commit while the pages are walked through. */
const MOST_WALKS = 100

/**
 * Makes the file if there is none. lmdb 3.5.6 reads freed memory, and often crashes, if LMDB refuses a file.
 * @returns what was expected of a file that LMDB would refuse, or that was cut off; undefined for one that is whole
 */
export function faultOf(file: string): string | undefined {
  const descriptor = openSync(file, 'a+', 0o664)
  try {
    const { size } = fstatSync(descriptor)
    if (size === 0) return undefined
    const first = bytesAt(descriptor, 0, META.BYTES)
    const isMeta = (word16(first, PAGE.FLAGS) & FLAG.META) !== 0 && word32(first, META.MAGIC) === MAGIC
    if (!isMeta || word32(first, META.VERSION) !== VERSION)
      return `an LMDB database of data format ${VERSION}, as of lmdb 3`
    const pageSize = word32(first, META.PAGE_SIZE)
    if (size < 2 * pageSize) return `an LMDB database of ${2 * pageSize} bytes or more`
    return isCutOff(descriptor, pageSize) ? 'a whole LMDB database, not one that was cut off' : undefined
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Whether a page that is in use is beyond the end of the file. The last pages of a whole file may be there, too: LMDB
 * does not write a page that is taken and given back in the same transaction.
 */
function isCutOff(descriptor: number, pageSize: number): boolean {
  for (let walk = 0; walk < MOST_WALKS; walk++) {
    const meta = newestMeta(descriptor, pageSize)
    // The size is read after the meta page, as another process writes its pages before the meta page that names them.
    const { size } = fstatSync(descriptor)
    if (size >= (word64(meta, META.LAST_PAGE) + 1) * pageSize) return false
    if (!usesPageBeyond(descriptor, pageSize, meta, size)) return false
    // After a commit the pages of the meta page may be those of others.
    const again = newestMeta(descriptor, pageSize)
    if (word64(again, META.TRANSACTION) === word64(meta, META.TRANSACTION)) return true
  }
  return false // a file that others commit to so often is whole
}

/** The first two pages take turns. */
function newestMeta(descriptor: number, pageSize: number): Buffer {
  const [first, second] = [0, pageSize].map((at) => bytesAt(descriptor, at, META.BYTES)) as [Buffer, Buffer]
  return word64(second, META.TRANSACTION) > word64(first, META.TRANSACTION) ? second : first
}

/** Walks through the trees of free pages and of all databases. */
function usesPageBeyond(descriptor: number, pageSize: number, meta: Buffer, size: number): boolean {
  const pages = size / pageSize
  const pending = [word64(meta, META.FREE_ROOT), word64(meta, META.MAIN_ROOT)]
  const seen = new Set(pending)
  const push = (page: number): void => {
    if (!seen.has(page)) pending.push(page)
    seen.add(page)
  }
  for (let page = pending.pop(); page !== undefined; page = pending.pop()) {
    if (page > Number.MAX_SAFE_INTEGER) continue // the tree is empty
    if (page + 1 > pages) return true
    const bytes = bytesAt(descriptor, page * pageSize, pageSize)
    const flags = word16(bytes, PAGE.FLAGS)
    if ((flags & FLAG.LEAF2) !== 0) continue // values of one size, without nodes
    for (let index = 0; index < word16(bytes, PAGE.LOWER) >> 1; index++) {
      const node = PAGE.POINTERS + word16(bytes, PAGE.POINTERS + 2 * index)
      const nodeFlags = word16(bytes, node + NODE.FLAGS)
      const data = node + NODE.KEY + word16(bytes, node + NODE.KEY_BYTES)
      if ((flags & FLAG.BRANCH) !== 0) push(word32(bytes, node) + nodeFlags * 2 ** 32)
      else if ((nodeFlags & DATA.DATABASE) !== 0) push(word64(bytes, data + DATA.ROOT))
      else if (
        (nodeFlags & DATA.ON_PAGES) !== 0 &&
        word64(bytes, data) + word64(bytes, data + DATA.PAGES) > pages
      )
        return true
    }
  }
  return false
}

function bytesAt(descriptor: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  readSync(descriptor, bytes, 0, length, at)
  return bytes
}

const isLittle = endianness() === 'LE'
const word16 = (bytes: Buffer, at: number): number =>
  isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
const word32 = (bytes: Buffer, at: number): number =>
  isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)

/** Exact up to 2^53. */
const word64 = (bytes: Buffer, at: number): number =>
  Number(isLittle ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at))
