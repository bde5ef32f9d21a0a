// npm run dev -- fuzz:native --minutes 10 --seed 1: random calls of the addon (test/native/fuzz/), built with
// AddressSanitizer and UBSan. Fails on any report of a sanitizer and on any complaint of the test.
import { spawn } from 'node:child_process'
import { buildAddon, emptyFolder, environmentFor, reportsIn, root } from './sanitizers.mjs'

const SANITIZERS = ['address', 'undefined']

process.stderr.write(`building the addon: ${SANITIZERS.join(', ')}\n`)
const reports = emptyFolder('sanitize/fuzz-reports')
const env = environmentFor(SANITIZERS, buildAddon(SANITIZERS), reports)
const args = ['build/test/native/fuzz/main.js', ...process.argv.slice(2)]
const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
let summary = ''
child.stdout.on('data', (chunk) => (summary += chunk))
child.on('close', (code, signal) => {
  const found = reportsIn(reports)
  for (const report of found) process.stderr.write(report)
  console.log(`${summary.trim() || `ended with ${signal ?? code}`}; ${found.length} reports`)
  process.exitCode = code === 0 && found.length === 0 ? 0 : 1
})
