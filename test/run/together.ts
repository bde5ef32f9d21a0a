// Runs the test files that are its arguments in this process, one after the other. Prints the path of each before its
// tests.
import { run } from 'uvu/run'

await run(process.argv.slice(2).map((file) => ({ name: file, file })))
