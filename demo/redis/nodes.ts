import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { NodeLog, NodeOrder, NodeReport, NodeTask } from './messages.js'

const NODE = fileURLToPath(new URL('./node.js', import.meta.url))

/** The demo shows when Redis is away: the processes need not warn. */
const QUIET = ['MILLRACE_OUTAGE', 'MILLRACE_RECOVERED'].map((code) => `--disable-warning=${code}`)

/** The processes of one run. */
export class Nodes {
  readonly #children: readonly ChildProcess[]

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children
  }

  /** Starts a process for each task. Resolves when all have reached Redis. */
  static async start(tasks: readonly NodeTask[]): Promise<Nodes> {
    const nodes = new Nodes(
      tasks.map((task) => fork(NODE, [JSON.stringify(task)], { execArgv: QUIET, serialization: 'advanced' })),
    )
    try {
      await nodes.#all('ready')
      return nodes
    } catch (error) {
      nodes.end()
      throw error
    }
  }

  load(): void {
    this.#tell('load')
  }

  /** Resolves when Redis has decided a request of each process: after how many milliseconds, for each. */
  async back(): Promise<number[]> {
    const startMs = performance.now()
    const back = this.#children.map(async (child) => {
      await reportOf(child, 'back')
      return performance.now() - startMs
    })
    this.#tell('resumed')
    return Promise.all(back)
  }

  /** Ends the load and the processes. */
  async stop(): Promise<NodeLog[]> {
    const exits = this.#children.map((child) => once(child, 'exit'))
    const stopped = this.#all('stopped')
    this.#tell('stop')
    const logs = (await stopped).map(({ log }) => log)
    await Promise.all(exits)
    return logs
  }

  /** Ends processes that have not ended, after an error. */
  end(): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }

  #tell(order: NodeOrder): void {
    for (const child of this.#children) child.send(order)
  }

  #all<Type extends NodeReport['type']>(type: Type) {
    return Promise.all(this.#children.map((child) => reportOf(child, type)))
  }
}

/** The next report of a type. Rejects if the process ends before. */
function reportOf<Type extends NodeReport['type']>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<NodeReport, { type: Type }>> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: string | null) => {
      reject(new Error(`a process of the demo ended with ${signal ?? code}`))
    }
    const onMessage = (report: NodeReport) => {
      if (report.type !== type) return
      child.off('exit', onExit).off('message', onMessage)
      resolve(report as Extract<NodeReport, { type: Type }>)
    }
    child.on('exit', onExit).on('message', onMessage)
  })
}
