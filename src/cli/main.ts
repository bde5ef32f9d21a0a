#!/usr/bin/env node
import { ownFile } from '../core/own-file.js'

// First of all, and what follows only then: in a bundle the modules that `run` imports fail before it could say why.
ownFile('package.json')
const { run } = await import('./program.js')
process.exitCode = await run(process.argv.slice(2), process)
