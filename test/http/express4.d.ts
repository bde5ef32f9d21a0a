/** Express 4, installed beside Express 5. Its types are those of Express 5 as far as the tests use them. */
declare module 'express4' {
  import type express from 'express'

  const express4: typeof express
  export default express4
}
