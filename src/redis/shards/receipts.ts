/** Charges of one rule: each at a place, such as a shard, and with the receipt that the store there has given. */
export interface PlacedReceipt {
  readonly place: number
  readonly receipt: readonly (number | string)[]
}

/** Packs the receipts of one rule into one: how many, then of each its place, its length and its numbers. */
export function packReceipts(receipts: readonly PlacedReceipt[]): number[] | undefined {
  if (receipts.length === 0) return undefined
  const packed = receipts.flatMap(({ place, receipt }) => [place, receipt.length, ...receipt.map(Number)])
  return [receipts.length, ...packed]
}

/** What stands for the receipt of a rule that has charged nothing. */
export const NO_RECEIPT: readonly string[] = ['', '']

/** The receipts of each rule, from the arguments of an operation that gives back. */
export function unpackReceipts(args: readonly string[]): PlacedReceipt[][] {
  const rules: PlacedReceipt[][] = []
  let at = 0
  while (at < args.length) {
    const receipts: PlacedReceipt[] = []
    rules.push(receipts)
    if (args[at] === '') {
      at += NO_RECEIPT.length
      continue
    }
    const count = Number(args[at++])
    while (receipts.length < count) {
      const [place, length] = [Number(args[at]), Number(args[at + 1])]
      receipts.push({ place, receipt: args.slice(at + 2, at + 2 + length) })
      at += 2 + length
    }
  }
  return rules
}

/** The places of receipts, each with the arguments by which the store there gives back. */
export function argumentsByPlace(rules: readonly (readonly PlacedReceipt[])[]): Map<number, string[]> {
  const places = new Set(rules.flat().map(({ place }) => place))
  return new Map(
    [...places].map((place) => [
      place,
      rules.flatMap((receipts) =>
        (receipts.find((each) => each.place === place)?.receipt ?? NO_RECEIPT).map(String),
      ),
    ]),
  )
}
