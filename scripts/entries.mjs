/**
 * The subpaths of the package, and the file of src/ that each is, without its ending. The build writes dist/entries/
 * and esm/entries/ by this table; `exports` of package.json leads there.
 */
export const ENTRIES = {
  http: 'http/node',
  express: 'http/express',
  fastify: 'http/fastify',
  koa: 'http/koa',
  web: 'http/web',
  hono: 'http/hono',
  nest: 'http/nest',
  fetch: 'fetch/fetch',
  undici: 'fetch/undici',
  'compat/express-rate-limit': 'compat/express-rate-limit',
  'compat/fastify-rate-limit': 'compat/fastify-rate-limit',
  'compat/nestjs-throttler': 'compat/nestjs-throttler',
  'compat/rate-limiter-flexible': 'compat/rate-limiter-flexible',
  'compat/limiter': 'compat/limiter',
  redis: 'redis/redis',
  memcached: 'memcached/memcached',
  backend: 'backend/backend',
  client: 'client/client',
  metrics: 'metrics/metrics',
  'config/memory': 'config/memory',
  'config/file': 'config/file',
  'config/lmdb': 'config/lmdb',
  'config/redis': 'config/redis',
  'config/dynamodb': 'config/dynamodb',
  'config/mongodb': 'config/mongodb',
  'config/sharded': 'config/sharded',
  internal: 'internal',
}
