// Three engines, processes of their own, behind a balancer with the configuration of an example.
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { readText } from '../package/root.js'
import { poll } from '../redis/poll.js'
import { freePort } from '../redis/ports.js'
import { type Server, startServer } from '../redis/process.js'
import { type Command, command } from './command-line.js'
import { nginxText } from './nginx-text.js'

const ENGINES = 3

/** An answer of the balancer; status 0: the connection was lost. */
export interface Balanced {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what it is
  readonly body: any
}

/** Three engines and their balancer. */
export interface Fleet {
  /** The addresses of the engines. */
  readonly urls: readonly string[]
  readonly balancer: Server
  /** Asks the balancer, on a connection that stays open. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Balanced>
  /** Ends an engine by a signal, and waits until it has ended. */
  end(engine: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** Starts an engine that has ended, on its port, with other options if they are given. */
  begin(engine: number, args?: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** A text with the ports of a test in place of 8080 (the balancer) and 8081 to 8083. */
export function withPorts(text: string, port: number, engines: readonly number[]): string {
  return text.replace(/\b808([0-3])\b/g, (_, digit) => `${[port, ...engines][digit]}`)
}

/** @param args the options of the engines, or those of each by its index */
export async function fleet(
  program: 'haproxy' | 'nginx',
  example: string,
  args: readonly string[] | ((engine: number) => readonly string[]),
): Promise<Fleet> {
  const ports: number[] = []
  for (let i = 0; i < ENGINES; i++) ports.push(await freePort())
  const start = (engine: number, own = typeof args === 'function' ? args(engine) : args) =>
    command([...own, '--port', `${ports[engine]}`])
  const engines: Command[] = await Promise.all(ports.map((_, engine) => start(engine)))
  const text = readText(example)
  const endAll = () =>
    Promise.all(engines.map(({ process: { exitCode, signalCode }, end }) => exitCode ?? signalCode ?? end()))
  const balancer = await startBalancer(program, (port) => withPorts(text, port, ports)).catch(
    async (error: unknown) => {
      await endAll()
      throw error
    },
  )
  const agent = new Agent({ keepAlive: true })
  return {
    urls: engines.map(({ url }) => url),
    balancer,
    post: (path, body, headers = {}) => post(agent, balancer.port, path, JSON.stringify(body), headers),
    async end(engine, signal) {
      if (signal === 'SIGKILL') engines[engine]!.process.kill(signal)
      await engines[engine]!.end()
    },
    async begin(engine, args) {
      engines[engine] = await start(engine, args)
    },
    async close() {
      agent.destroy()
      await balancer.stop()
      await endAll()
    },
  }
}

/** How many checks an engine has answered since its start. */
export async function answeredBy(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const counted = /^millrace_service_request_duration_seconds_count\{[^}]*route="\/v1\/check"[^}]*\} (\d+)$/gm
  return [...text.matchAll(counted)].reduce((sum, [, count]) => sum + Number(count), 0)
}

async function startBalancer(
  program: 'haproxy' | 'nginx',
  textOf: (port: number) => string,
): Promise<Server> {
  const server = await startServer({
    program,
    args(port, dir) {
      writeFileSync(`${dir}/balancer.conf`, program === 'nginx' ? nginxText(textOf(port), dir) : textOf(port))
      return program === 'haproxy'
        ? ['-W', '-db', '-f', `${dir}/balancer.conf`]
        : ['-p', dir, '-c', `${dir}/balancer.conf`]
    },
    ready: program === 'haproxy' ? /Loading success/ : /nginx\/\d/,
  })
  const isUp = async () =>
    (await fetch(`http://127.0.0.1:${server.port}/readyz`).catch(() => undefined))?.ok ?? false
  await poll(isUp, `an engine behind ${program}`)
  return server
}

function post(agent: Agent, port: number, path: string, text: string, headers: Record<string, string>) {
  return new Promise<Balanced>((resolve) => {
    const lost = () => resolve({ status: 0, body: undefined })
    const sent = request(
      {
        agent,
        host: '127.0.0.1',
        port,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
      },
      (response) => {
        let answer = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          answer += chunk
        })
        response.on('error', lost)
        response.on('end', () => {
          const isJson = /json/.test(response.headers['content-type'] ?? '')
          resolve({ status: response.statusCode!, body: isJson ? JSON.parse(answer) : answer })
        })
      },
    )
    sent.on('error', lost)
    sent.end(text)
  })
}
