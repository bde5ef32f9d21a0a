import { createHmac } from 'node:crypto'

/** The HMAC-SHA-256 of a key by a secret, in base64url. */
export const keyHash = (key: string, secret: string): string =>
  createHmac('sha256', secret).update(key).digest('base64url')
