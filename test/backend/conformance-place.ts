// The place `backend` of the conformance suite: the example of docs/how-to/backends.md.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type BackendLimiterOptions, createBackendLimiter, type Values } from 'millrace/backend'
import type { Maker } from '../conformance/places.js'
import { root } from '../package/root.js'
import { remoteMaker } from '../redis/conformance-place.js'

export type OpenValues = Values & { close(): Promise<void> }

/** The example. */
export async function lmdbValues(path: string): Promise<OpenValues> {
  const example = (await import(pathToFileURL(join(root, 'examples/lmdb-values.mjs')).href)) as {
    lmdbValues(path: string): OpenValues
  }
  return example.lmdbValues(path)
}

/** A folder that goes with the process. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-backend-'))
  process.on('exit', () => rmSync(folder, { recursive: true }))
  return folder
}

let started: Promise<OpenValues> | undefined

export async function backendMaker(): Promise<Maker> {
  started ??= lmdbValues(join(temporaryFolder(), 'counts'))
  const values = await started
  return remoteMaker((options) =>
    createBackendLimiter({ ...(options as BackendLimiterOptions), values, source: 'lmdb', clockSkew: 0 }),
  )
}
