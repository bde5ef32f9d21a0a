// The same app as before.mjs on a storage of Millrace, which differs by one import. The decorators are
// applied by hand, so that the example starts without a compiler.
//
//   node examples/migrate/nestjs-throttler/after.mjs
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { ThrottlerStorageService } from 'millrace/compat/nestjs-throttler'

class AppController {
  hello() {
    return 'hello\n'
  }
}
// @Get()
Get()(AppController.prototype, 'hello', Object.getOwnPropertyDescriptor(AppController.prototype, 'hello'))
// @Controller()
Controller()(AppController)

class AppModule {}
// @Module({ imports: ... })
const throttlers = [{ ttl: 60_000, limit: 5 }]
const imports = [ThrottlerModule.forRoot({ throttlers, storage: new ThrottlerStorageService() })]
const providers = [{ provide: APP_GUARD, useClass: ThrottlerGuard }]
Module({ imports, controllers: [AppController], providers })(AppModule)

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
console.log(`listening on ${await app.getUrl()}`)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
