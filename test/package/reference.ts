// What the API reference shows (`docs-site/typedoc.json`): all that the package exports for these modules.
export * from '../../src/index.js'
export * from '../../src/memcached/memcached.js'
export * from '../../src/redis/redis.js'
