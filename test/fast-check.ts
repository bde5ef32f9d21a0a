// fast-check with the same examples for each commit; in `npm run test:long`, with others each time.
import fc from 'fast-check'
import { isLong } from './size.js'

if (!isLong) fc.configureGlobal({ seed: 20_261_127 })

export { default } from 'fast-check'
