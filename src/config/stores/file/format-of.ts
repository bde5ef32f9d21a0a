import { extname } from 'node:path'
import { invalid } from '../../../core/errors.js'
import { jsonText } from './json-text.js'
import type { TextFormat } from './text-format.js'
import { yamlText } from './yaml-text.js'

const FORMATS: Record<string, () => TextFormat> = {
  '.json': () => jsonText,
  '.yaml': yamlText,
  '.yml': yamlText,
}

/**
 * The format of a file of policies, by the ending of its path.
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for another ending, `ERR_MILLRACE_MISSING_PEER` for YAML if the
 * package `yaml` is not installed
 */
export function formatOf(path: unknown): TextFormat {
  const format = typeof path === 'string' ? FORMATS[extname(path).toLowerCase()] : undefined
  if (format === undefined) throw invalid('path', path, 'a path that ends in .json, .yaml or .yml')
  return format()
}
