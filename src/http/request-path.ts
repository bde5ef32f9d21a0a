/**
 * The path of a request as the router behind the limiter reads it. A client can spell a path in ways that
 * routers read differently, such as `/api\login#`. The limiter must not read another path than the router.
 */
import { parse } from 'node:url'

/** Targets that Express and Koa leave to `url.parse`, by their package `parseurl`. */
const LEFT_TO_PARSE = /^[^/]|[\t\n\f\r #\u00a0\ufeff]/

/**
 * The path as Express and Koa read it.
 * @throws TypeError for a target that they can't read either, such as `http://a:b/`
 */
export function pathByParse(target: string): string {
  return LEFT_TO_PARSE.test(target) ? (parse(target).pathname ?? '/') : target
}

/** A target with a host, as for a proxy. */
const HOST = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/** The path as Fastify reads it with `useSemicolonDelimiter`: what follows a semicolon is a query. */
export function pathBySemicolon(target: string): string {
  const end = target.indexOf(';', HOST.exec(target)?.[0].length ?? 0)
  return end < 0 ? target : target.slice(0, end)
}

/** The part of a Fastify instance that says so. */
export interface SemicolonConfig {
  readonly initialConfig?: { readonly routerOptions?: object }
}

export function usesSemicolon(instance: SemicolonConfig | undefined): boolean {
  const { initialConfig = {} } = instance ?? {}
  const options: readonly object[] = [initialConfig, initialConfig.routerOptions ?? {}]
  return options.some((each) => (each as { useSemicolonDelimiter?: boolean }).useSemicolonDelimiter === true)
}

/** Targets whose path `new URL` changes: dot segments, backslashes, a host, and white space. */
const CHANGED_BY_URL = /^(?:[^/]|\/\/)|\\|\/(?:\.|%2e)|[^!-~]/i

/**
 * The path as an app reads it by `new URL(request.url, 'http://server').pathname`. A target that is no URL
 * stays as it is.
 */
export function pathByUrl(target: string): string {
  if (!CHANGED_BY_URL.test(target)) return target
  try {
    return new URL(target, 'http://server').pathname
  } catch {
    return target
  }
}
