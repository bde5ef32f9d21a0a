// Limits an app of Nest: 10 requests a minute for each client, 5 tries to log in in 15 minutes, and no limit for the health
// check. The decorators are applied by hand, so that the example starts without a compiler: the comments show them as
// TypeScript has them.
//
//   npm install @nestjs/common @nestjs/core @nestjs/platform-express reflect-metadata rxjs
//   node examples/nest.mjs
//   for i in $(seq 7); do curl -si -X POST http://127.0.0.1:3000/login | grep -iE '^(http|rate|retry)'; done
import 'reflect-metadata'
import { Controller, Get, Module, Post } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { RateLimitGuard, RateLimitModule, SkipThrottle, Throttle } from 'millrace/nest'

class AppController {
  hello() {
    return 'hello\n'
  }

  login() {
    return 'welcome\n'
  }

  health() {
    return 'well\n'
  }
}

/** Decorates a class, or a method of it. */
function decorate(target, method, ...decorators) {
  if (method === undefined) Reflect.decorate(decorators, target)
  else Reflect.decorate(decorators, target.prototype, method, descriptorOf(target, method))
}
const descriptorOf = (target, method) => Object.getOwnPropertyDescriptor(target.prototype, method)

// @Get()
decorate(AppController, 'hello', Get())
// @Post('login')
// @Throttle({ name: 'logins', limit: 5, window: '15m' })
decorate(AppController, 'login', Post('login'), Throttle({ name: 'logins', limit: 5, window: '15m' }))
// @Get('health')
// @SkipThrottle()
decorate(AppController, 'health', Get('health'), SkipThrottle())
// @Controller()
decorate(AppController, undefined, Controller())

class AppModule {}
// @Module({ imports: ... })
const imports = [RateLimitModule.forRoot({ name: 'per-client', limit: 10, window: '1m' })]
const providers = [{ provide: APP_GUARD, useClass: RateLimitGuard }]
decorate(AppModule, undefined, Module({ imports, controllers: [AppController], providers }))

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
console.log(`listening on ${await app.getUrl()}`)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close()) // closes the limiters, too
