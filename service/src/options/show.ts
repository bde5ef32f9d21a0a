// The texts of `--print-config` and `--help`.
import { stringify } from 'yaml'
import { shownUrl } from '../stores/addresses.js'
import type { Read } from './read.js'
import { flagOf, OPTION_NAMES, optionOf } from './table.js'

const HIDDEN = '***'

/** The options as a file, with the source of each. Secrets are hidden. */
export function printedConfig({ settings, sources }: Read): string {
  return OPTION_NAMES.map((name) => {
    const value = settings[name]
    const by = sources.get(name)?.by ?? 'default'
    if (value === undefined) return `# ${name}: not set\n`
    const isHidden = optionOf(name).isSecret && sources.has(name)
    const own = isHidden ? HIDDEN : typeof value === 'string' ? shownUrl(value) : value
    return `# ${name}: from ${by}\n${stringify({ [name]: own })}`
  }).join('')
}

/** A line or two for each option. */
export function optionsHelp(): string {
  return OPTION_NAMES.map((name) => {
    const { value, help, isSecret } = optionOf(name)
    const plain = help.replaceAll('`', '')
    if (isSecret) return `  ${name} (never a flag)\n      ${plain}`
    return `  ${flagOf(name)}${value === '' ? '' : ` <${value}>`}\n      ${plain}${shownFallback(name)}`
  }).join('\n')
}

function shownFallback(name: (typeof OPTION_NAMES)[number]): string {
  const { fallback, value } = optionOf(name)
  if (fallback === undefined || typeof fallback === 'object') return ''
  return ` Default: ${value === 'duration' ? `${fallback}ms` : fallback}.`
}
