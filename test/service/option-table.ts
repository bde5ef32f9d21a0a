// The table of options of `docs/service.md`, from the table of the service.
import { flagOf, OPTION_NAMES, optionOf } from 'millrace-service/dist/options/table.js'

/** The rows of the table. */
export function optionRows(): string[] {
  return OPTION_NAMES.map((name) => {
    const { fallback, help, isSecret, value } = optionOf(name)
    const isNone = fallback === undefined || typeof fallback === 'object'
    const shown = isNone ? '' : `\`${value === 'duration' ? `${fallback}ms` : fallback}\``
    return `| \`${name}\` | ${isSecret ? 'never a flag' : `\`${flagOf(name)}\``} | ${shown} | ${help.replaceAll('|', '\\|')} |`
  })
}
