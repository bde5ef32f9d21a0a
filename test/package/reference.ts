// What the API reference shows (`docs-site/typedoc.json`): all that the package exports for these modules.
// biome-ignore-all assist/source/organizeImports: a type has the first of its names, so `RedisStats` comes before Memcached's
export * from '../../src/index.js'
export * from '../../src/redis/redis.js'
export * from '../../src/memcached/memcached.js'
export * from '../../src/backend/backend.js'
export * from '../../src/client/client.js'
export * from '../../src/config/memory.js'
export * from '../../src/config/file.js'
export * from '../../src/config/lmdb.js'
export * from '../../src/config/redis.js'
export * from '../../src/config/dynamodb.js'
export * from '../../src/config/mongodb.js'
export * from '../../src/config/sharded.js'
