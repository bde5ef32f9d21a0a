import { type Command, InvalidArgumentError, Option } from 'commander'
import type { RuleOptions } from 'millrace'
import type { Policy } from 'millrace/config/memory'
import { checkPolicy, checkPolicyRule, parsePolicy } from 'millrace/internal'
import { duration, type LimitIn, policyLimitIn } from '../arguments.js'
import { helpParagraph, print, printable, UsageError } from '../terminal.js'
import { withStore } from './open-store.js'
import { type AddCommand, keyArgument, type StoreOptions, storeIn, storeOption, version } from './options.js'
import { ruleTexts } from './policy-text.js'
import { storeAddress } from './store-url.js'

/** The options of rules have their names in the library. */
interface SetOptions extends StoreOptions, Partial<RuleOptions> {
  readonly rule?: LimitIn<number | 'unlimited'>[]
  readonly json?: string
  /** `none`: only if the key has no policy. */
  readonly ifVersion?: number | 'none'
}

const EXAMPLE = "Example: millrace config set 'user:*' --store lmdb:./limits -r 10/1s -r 1000/1h"

const RULE_FLAGS: readonly Option[] = [
  new Option(
    '-l, --limit <units>',
    'units in any window: a number, or with --unit a size such as 10GB; 0 refuses, unlimited is not counted',
  ).argParser(size),
  new Option('-w, --window <duration>', 'length of the window, such as 10s, 1m, 1h, 1d').argParser(duration),
  new Option('-g, --granularity <duration>', 'length of a bucket; divides the window').argParser(duration),
  new Option('-a, --algorithm <name>', 'how the limit counts, such as token-bucket'),
  new Option('-e, --edge <edge>', 'of sliding-window, how the oldest bucket counts: strict or smooth'),
  new Option('--align <start>', 'of fixed-window, where windows begin: clock, first or calendar'),
  new Option('--period <name>', 'of align calendar, in place of a window: day, week, month or year'),
  new Option('--time-zone <name>', 'of align calendar, such as Europe/Berlin'),
  new Option('-b, --burst <units>', 'of token-bucket and leaky-bucket, units at once').argParser(size),
  new Option('--unit <size>', 'what is counted as one unit, such as 64KB').argParser(size),
  new Option('--max-limit <units>', 'of sliding-log, the largest limit later').argParser(size),
  new Option('--range-sum <name>', 'how many buckets are summed: blocks or fenwick'),
  new Option('--name <name>', 'the name of the rule in decisions'),
  new Option('--count-refused', 'charge refused requests too'),
  new Option('--shadow', 'try the rule without enforcing it'),
]

/** `millrace config set KEY`: stores the policy of a key. */
export const setCommand: AddCommand = (config, { stdout }) => {
  const command = config
    .command('set')
    .summary('store the policy of a key')
    .description(
      'Stores the policy of a key, in place of the one that it has. Limiters that use the store take it while they run.',
    )
    .addArgument(keyArgument('<key>', 'the key of a client, or a prefix such as user:*'))
    .addOption(storeOption())
    .addOption(
      new Option(
        '-r, --rule <limit/window>',
        'a limit and its window, such as 10/1s, instead of -l and -w. Repeat it for several rules: a request must fit ' +
          'all of them',
      )
        .argParser(policyLimitIn)
        .conflicts(['limit', 'window', 'name']),
    )
  for (const option of RULE_FLAGS) command.addOption(option)
  command
    .addOption(
      new Option('--json <policy>', 'the policy as JSON: one rule, or {"rules": [...]}').conflicts([
        'rule',
        ...RULE_FLAGS.map((option) => option.attributeName()),
      ]),
    )
    .addOption(
      new Option('--if-version <version>', 'only if the key has this version, or none: no policy').argParser(
        versionOrNone,
      ),
    )
    .addHelpText('after', () => helpParagraph(EXAMPLE, stdout))
    .action(async (key: string, options: SetOptions) => {
      const url = storeIn(options, command)
      storeAddress(url)
      const policy = policyOf(options, command)
      const { ifVersion } = options
      const stored = await withStore(url, { creates: true }, (store) =>
        store.put(key, policy, {
          ...(ifVersion !== undefined && { ifVersion: ifVersion === 'none' ? null : ifVersion }),
        }),
      )
      await print(
        stdout,
        `${printable(key)}: ${ruleTexts(stored.policy).join('; ')}, version ${stored.version}\n`,
      )
    })
}

/** @throws CommanderError, UsageError or MillraceError for a policy that is none */
function policyOf(options: SetOptions, command: Command): Policy {
  const { json, rule } = options
  if (json !== undefined) return parsePolicy(parsedJson(json), '--json').policy
  const names = RULE_FLAGS.map((option) => option.attributeName())
  const more = Object.fromEntries(
    names.flatMap((name) => {
      const value = options[name as keyof SetOptions]
      return value === undefined ? [] : [[name, value]]
    }),
  )
  if (rule === undefined && (more.limit === undefined || (more.window ?? more.period) === undefined)) {
    const missing = more.limit === undefined ? '-l, --limit <units>' : '-w, --window <duration>'
    command.error(`missing option '${missing}'. Expected --limit and --window, or --rule, or --json`)
  }
  const rules = rule?.map(({ name, limit, window }) => {
    const one = { ...(rule.length > 1 && { name }), limit, window, ...more }
    checkPolicyRule(one, `--rule ${name}: `)
    return one
  })
  const policy = rules === undefined ? more : rules.length === 1 ? rules[0] : { rules }
  checkPolicy(policy)
  return policy as Policy
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(
      `--json: expected JSON such as {"limit":100,"window":"1m"}: ${(error as Error).message}`,
    )
  }
}

/** A number, or a text that the library parses, such as `10GB` or `unlimited`. */
function size(text: string): number | string {
  return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
}

function versionOrNone(text: string): number | 'none' {
  if (text === 'none') return text
  try {
    return version(text)
  } catch {
    throw new InvalidArgumentError('Expected the version of a policy, as get and list show it, or none.')
  }
}
