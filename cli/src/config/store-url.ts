import { readStoreAddress, type StoreAddress, WrongAddress } from 'millrace/internal'
import { UsageError } from '../terminal.js'

/**
 * Reads the URL of a store.
 * @throws UsageError that says what would be right, without the password of the URL
 */
export function storeAddress(url: string): StoreAddress {
  try {
    return readStoreAddress(url)
  } catch (error) {
    if (!(error instanceof WrongAddress)) throw error
    throw new UsageError(`--store: ${error.message}`, { cause: error })
  }
}
