import type { ConfigStore } from 'millrace/config/memory'
import type { Listed } from './policy-table.js'

/** As many as the contract allows: DynamoDB reads its whole table for each page. */
const PAGE = 10_000

/** All documents of a store whose keys begin with `prefix`, in pages. */
export async function* pagesOf(store: ConfigStore, prefix = ''): AsyncGenerator<readonly Listed[]> {
  let after: string | undefined
  for (;;) {
    const page = await store.list({ prefix, limit: PAGE, ...(after !== undefined && { after }) })
    yield page
    if (page.length < PAGE) return
    after = page.at(-1)!.key
  }
}
