// Finds and reads the files of the option `envoyConfig`.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, type ConfigFile } from './yaml.js'

/** The files that paths name: those of a directory are its `*.yaml` and `*.yml`, without those that begin with a dot. */
function configFilesOf(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    try {
      if (!statSync(path).isDirectory()) return [path]
      const names = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/.test(name))
      return names.sort().map((name) => join(path, name))
    } catch (error) {
      throw new ConfigError(
        `${path}: expected a file or a directory that can be read: ${(error as Error).message}`,
      )
    }
  })
}

/** @throws ConfigError for a file that can't be read, and where there is none */
export function readFiles(paths: readonly string[]): ConfigFile[] {
  const files = configFilesOf(paths)
  if (files.length === 0)
    throw new ConfigError(`${paths.join(', ')}: expected a file whose name ends in .yaml or .yml, got none`)
  return files.map((path) => {
    try {
      return { path, text: readFileSync(path, 'utf8') }
    } catch (error) {
      throw new ConfigError(`${path}: expected a file that can be read: ${(error as Error).message}`)
    }
  })
}

/** Differs when files change, come or go. */
export function signatureOf(paths: readonly string[]): string {
  try {
    const files = configFilesOf(paths).map((path) => {
      const { mtimeMs, ino, size } = statSync(path)
      return [path, mtimeMs, ino, size]
    })
    return JSON.stringify(files)
  } catch (error) {
    return (error as Error).message
  }
}
