// `npm run dev -- test:runtimes`: runs test/runtimes/program.mjs on Node.js, Bun and Deno, in a project with the
// packed package and the runtimes installed from npm. Linux on x64 only.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-runtimes-'))
const MOST_MS = 120_000
/** Programs that compile: of the types that a server hands on, or that a program names. */
const TYPED = {
  bun: `import { rateLimit } from 'millrace/web'
    const rule = { limit: 100, window: '1m' }
    Bun.serve({
      port: 0,
      fetch: rateLimit(
        { ...rule, address: (request, server) => server.requestIP(request)?.address },
        (request) => new Response(String(request.rateLimit?.remaining)),
      ),
    })
    const fetch = rateLimit(
      { ...rule, address: (request: Request, server: Bun.Server<undefined>) => server.requestIP(request)?.address },
      (request, server) => (server.upgrade(request) ? undefined : new Response('no upgrade')),
    )
    Bun.serve({ port: 0, fetch, websocket: { message() {} } })
    Bun.serve({ port: 0, routes: { '/users/:id': rateLimit(
      { ...rule, key: (request: Bun.BunRequest<'/users/:id'>) => request.params.id },
      (request) => new Response(request.params.id),
    ) } })
    rateLimit(
      // @ts-expect-error a server has no such method
      { ...rule, address: (request: Request, server: Bun.Server<undefined>) => server.address(request) },
      () => new Response(),
    )
`,
  deno: `import { rateLimit } from 'millrace/web'
    const rule = { limit: 100, window: '1m' }
    const address = (_: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>) => info.remoteAddr.hostname
    Deno.serve({ port: 0 }, rateLimit(
      { ...rule, address: (_, info) => info.remoteAddr.hostname },
      (request) => new Response(String(request.rateLimit?.remaining)),
    ))
    Deno.serve({ port: 0 }, rateLimit({ ...rule, address }, () => new Response()))
    // @ts-expect-error info has no such field
    Deno.serve({ port: 0 }, rateLimit({ ...rule, address: (_, info) => info.address }, () => new Response()))
`,
}
const COMPILED = `import { createLimiter } from 'millrace'
  import * as fastify from 'millrace/fastify'
  import byDefault from 'millrace/fastify'
  import { rateLimit } from 'millrace/web'
  const limited = rateLimit({ limit: 1, window: '1m', trustProxy: 1 }, () => new Response('hello'))
  const request = () => new Request('http://localhost/', { headers: { 'x-forwarded-for': '192.0.2.1' } })
  const found = [(await limited(request())).status, (await limited(request())).status]
  found.push(createLimiter({ limit: 5, window: '1m' }).check('key').remaining)
  if (found.join() !== '200,429,4' || byDefault !== fastify.rateLimit) throw new Error(found.join())
  process.exit()
`
const BUN_OPTIONS = {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: 'nodenext',
  types: ['bun-types'],
  noEmit: true,
  skipLibCheck: true, // the types of Bun have errors of their own
}

function run(command, args, cwd, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'inherit',
    timeout: MOST_MS,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`, { cause: error })
}

try {
  run('npm', ['pack', '--silent', '--pack-destination', folder], root)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz'))
  run(
    'npm',
    ['install', '--silent', `./${tarball}`, '@oven/bun-linux-x64@1', 'bun-types@1', 'deno@2'],
    folder,
  )
  cpSync(join(root, 'test/runtimes'), folder, { recursive: true })
  const modules = join(folder, 'node_modules')
  const runtimes = [
    { name: 'Node.js', command: [process.execPath], closesPools: true },
    { name: 'Bun', command: [join(modules, '@oven/bun-linux-x64/bin/bun')], closesPools: true },
    // close() of a pool does not resolve on Deno.
    { name: 'Deno', command: [join(modules, '@deno/linux-x64-glibc/deno'), 'run', '--allow-all'] },
  ]
  for (const [name, code] of Object.entries(TYPED)) writeFileSync(join(folder, `typed-${name}.mts`), code)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: BUN_OPTIONS, files: ['typed-bun.mts'] }),
  )
  console.log('types on Bun and Deno')
  run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], folder)
  run(runtimes[2].command[0], ['check', 'typed-deno.mts'], folder)
  console.log('an executable of Bun, with an entry of each kind')
  const [bun] = runtimes[1].command
  writeFileSync(join(folder, 'compiled.mjs'), COMPILED)
  run(bun, ['build', '--compile', 'compiled.mjs', '--outfile', 'compiled'], folder)
  const elsewhere = mkdtempSync(join(folder, 'elsewhere-'))
  run(join(folder, 'compiled'), [], elsewhere)
  run(bun, ['compiled.mjs'], folder)
  for (const { name, command, closesPools } of runtimes) {
    const others = runtimes.map((other) => other.command).filter((other) => other !== command)
    for (const native of ['0', '1']) {
      console.log(`${name}${native === '0' ? ', without the addon' : ''}:`)
      const env = { MILLRACE_NATIVE: native, RUNTIMES: JSON.stringify({ command, others, closesPools }) }
      const [program, ...args] = command
      run(program, [...args, 'program.mjs'], folder, env)
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}
