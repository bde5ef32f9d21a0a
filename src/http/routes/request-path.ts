/**
 * The path of a request as the router behind the limiter reads it. A client can spell a path in ways that
 * routers read differently, such as `/api\login#`. The limiter must not read another path than the router.
 */
import { parse } from 'node:url'

/** What a router may read in a request's target. */
export type Targets = readonly [string, ...string[]]

/** In place of a path where a router reads none, as in `http://?/login`: no path of a route. */
const NONE = '*'

/** Targets that Express and Koa leave to `url.parse`, by their package `parseurl`. */
const LEFT_TO_PARSE = /^[^/]|[\t\n\f\r #\u00a0\ufeff]/

/**
 * The path as Express and Koa read it. The oldest versions leave all targets to `url.parse`, which takes a backslash
 * for a slash.
 * @throws TypeError for a target that they can't read either, such as `http://a:b/`
 */
export function pathsByParse(target: string): Targets {
  if (LEFT_TO_PARSE.test(target)) return [pathByParse(target)]
  return target.includes('\\') ? [target, pathByParse(target)] : [target]
}

const pathByParse = (target: string): string => parse(target).pathname ?? NONE

/** A target with a host, as for a proxy. */
const HOST = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/** What the router of Fastify, `find-my-way`, cut off a target up to version 9.8. */
const HOST_UP_TO_9_8 = /^https?:\/\/.*?\//

/**
 * The path as Fastify reads it. Up to `find-my-way` 9.8, `http://host?/login` is `/login`, and up to 9.9 the first
 * character of a path is not compared: `*login` is `/login`.
 * @param usesSemicolon whether what follows a semicolon is a query
 */
export function pathsByFindMyWay(target: string, usesSemicolon: boolean): Targets {
  if (target.startsWith('/')) return [cut(target, usesSemicolon)]
  const path = target.replace(HOST, '')
  const older = target.replace(HOST_UP_TO_9_8, '/')
  const compared = `/${older.slice(1)}`
  return [cut(path.startsWith('/') ? path : `/${path}`, usesSemicolon), cut(compared, usesSemicolon)]
}

function cut(path: string, usesSemicolon: boolean): string {
  const end = usesSemicolon ? path.indexOf(';') : -1
  return end < 0 ? path : path.slice(0, end)
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
 * stays as it is, and may also have no path.
 */
export function pathsByUrl(target: string): Targets {
  if (!CHANGED_BY_URL.test(target)) return [target]
  try {
    return [new URL(target, 'http://server').pathname]
  } catch {
    return [target, NONE]
  }
}
