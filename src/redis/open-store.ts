import type { AlgorithmName } from '../core/algorithms.js'
import { MillraceError } from '../core/errors.js'
import { CountingStore } from '../remote/counting-store.js'
import type { KeyNames } from '../remote/key-names.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { RemoteStore } from '../remote/remote-store.js'
import { ValuesRunner } from '../values/values-runner.js'
import { Channel } from './channel.js'
import { connectLike, replicated } from './clients/connect.js'
import type { RedisConnection } from './clients/connection.js'
import { CLEAR_SCRIPT, clearNames } from './counting/clear-names.js'
import { clearWatched } from './counting/clear-watched.js'
import { COUNTER_SCRIPT } from './counting/counter-script.js'
import { CLEAR_LOG_SCRIPT, LOG_SCRIPT } from './counting/log-script.js'
import { ScriptRunner } from './counting/script-runner.js'
import { WatchPlace } from './counting/watch-place.js'
import { WatchSession } from './counting/watch-session.js'
import { LeasedStore } from './leases/leased-store.js'
import { StrictEngine } from './packed/strict-engine.js'
import { strictScript } from './packed/strict-script.js'
import type { RedisPlan } from './redis-options.js'
import { LOG_PROBE, rightsProbe } from './rights-probe.js'
import { scriptOf } from './script.js'
import type { OpenedShard } from './shards/shard.js'

/** Keys that have a lease at a time, in 1.2 MB. The server decides the others one by one. */
const MOST_LEASES = 8_192

/** A store, and how it reaches its server. */
interface OpenedStore extends OpenedShard {
  /** What counts on the server: the store itself, or what it takes leases from. */
  readonly counting: RemoteStore
  readonly channel: Channel
}

/** Makes stores of one server each, or of one Cluster. */
export function storeOpener(
  owner: object,
  plan: RedisPlan,
  names: KeyNames,
): (client: unknown, rules: readonly RemoteRule[]) => OpenedStore {
  const { testTime, deadlineMs, ownConnection, otherKeysExpire, isReplicated, isLeased, maxKeys } = plan
  const time = () => testTime?.() ?? 0
  return (client, rules) => {
    const outages = plan.outages.of(client)
    const connect = () => connectLike(client, ownConnection)
    const writingBy = (connection: RedisConnection) =>
      isReplicated ? replicated(connection, deadlineMs) : connection
    const own = SCRIPTS[rules[0]!.rule.algorithm]
    const channel = new Channel(
      writingBy(connect()),
      scriptOf(own?.script ?? strictScript(rules, testTime !== undefined)),
      deadlineMs,
      { otherKeysExpire },
      outages,
      rightsProbe(names.unused, own?.probe, plan.isOptimistic),
    )
    const counting = storeOf()
    const store = isLeased ? leased(counting as StrictEngine) : counting
    return { client, store, counting, outages, channel, isDown: () => channel.isInterrupted }

    function leased(strict: StrictEngine): LeasedStore {
      return new LeasedStore(strict, {
        owner,
        names,
        channel,
        testTime,
        keys: Math.min(maxKeys, MOST_LEASES),
      })
    }

    function storeOf(): RemoteStore {
      const counting = { owner, rules, names, time, maxKeys }
      const clear = () => clearBy(own?.clear)
      if (own === undefined) return new StrictEngine(counting, channel, clear)
      const runner = plan.isOptimistic ? transactions() : new ScriptRunner(channel, clear)
      return new CountingStore(counting, runner)
    }

    function transactions(): ValuesRunner {
      if (channel.connection.isCluster) refuseCluster(channel)
      const open = () => {
        const connection = connect()
        return new WatchSession(connection, writingBy(connection))
      }
      const clear = (runner: ValuesRunner) =>
        channel.onPrimaries((send) => clearWatched(send, names.pattern, runner, rules, time()))
      return new ValuesRunner(new WatchPlace(channel, open, deadlineMs, clear, outages))
    }

    function clearBy(script?: string): Promise<void> {
      const longestMs = Math.max(...rules.map(({ windowMs }) => windowMs))
      return channel.onPrimaries((send) => clearNames(send, names.pattern, longestMs, script))
    }
  }
}

/** The algorithms that packed values can't have: their scripts, and what a user must be allowed to run for them. */
const SCRIPTS: Partial<Record<AlgorithmName, { script: string; clear: string; probe?: string }>> = {
  'sliding-counter': { script: COUNTER_SCRIPT, clear: CLEAR_SCRIPT },
  'sliding-log': { script: LOG_SCRIPT, clear: CLEAR_LOG_SCRIPT, probe: LOG_PROBE },
}

function refuseCluster(channel: Channel): never {
  void channel.close()
  const expected = 'false for a Cluster'
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'optimistic', true, expected)
}
