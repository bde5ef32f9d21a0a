// run: full
// @Throttle and @SkipThrottle, on controllers and on handlers.
import { Controller } from '@nestjs/common'
import { SkipThrottle, Throttle, type ThrottleRules } from 'millrace/nest'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { appWith, base, controller, withApp } from './nest-app.js'
import { start } from './nest-driver.js'

const MODULE = '"default";q=2;w=60'
const one = (name: string): ThrottleRules => ({ name, limit: 1, window: '1h' })

test('rules of a handler replace those of its controller, which replace those of the module', async () => {
  const cats = controller('cats', { a: [], b: [], own: [Throttle(one('own'))] }, [Throttle(one('cats'))])
  const dogs = controller('dogs', { a: [], own: [Throttle(one('own'))], module: [Throttle({})] })
  await withApp(appWith(base(), [cats, dogs]), async ({ ask, get }) => {
    assert.is(await ask('/cats/a'), '200 "cats";q=1;w=3600')
    assert.is(await ask('/cats/b'), '429 "cats";q=1;w=3600') // all handlers of a controller count together
    assert.is(await ask('/cats/own'), '200 "own";q=1;w=3600')
    assert.is(await ask('/cats/own'), '429 "own";q=1;w=3600')
    assert.is(await ask('/dogs/own'), '200 "own";q=1;w=3600') // other rules, with the same name
    assert.is(await ask('/dogs/a'), `200 ${MODULE}`)
    assert.is(await (await get('/dogs/module')).text(), 'default')
    assert.is(await ask('/dogs/a'), `429 ${MODULE}`)
  })
})

test('{} on a handler stands for the rules of the module, also in a controller with rules', async () => {
  const cats = controller('cats', { module: [Throttle({})] }, [Throttle(one('cats'))])
  await withApp(appWith(base(), [cats]), async ({ ask }) => {
    assert.is(await ask('/cats/module'), `200 ${MODULE}`)
  })
})

test('@SkipThrottle leaves out a handler or a controller, and @SkipThrottle(false) undoes it', async () => {
  const cats = controller('cats', { free: [SkipThrottle()], limited: [] }, [Throttle(one('cats'))])
  const dogs = controller(
    'dogs',
    {
      free: [],
      limited: [SkipThrottle(false)],
      own: [Throttle(one('own'))],
      both: [SkipThrottle(), Throttle({})],
    },
    [SkipThrottle()],
  )
  const mice = controller('mice', { limited: [SkipThrottle(false)] }, [SkipThrottle(), Throttle(one('mice'))])
  await withApp(appWith(base(), [cats, dogs, mice]), async ({ ask, get }) => {
    for (const path of ['/cats/free', '/dogs/free', '/dogs/both']) {
      for (let i = 0; i < 3; i++) assert.is(await ask(path), '200', path)
    }
    assert.is(await (await get('/cats/free')).text(), 'none')
    assert.is(await ask('/cats/limited'), '200 "cats";q=1;w=3600')
    assert.is(await ask('/dogs/limited'), `200 ${MODULE}`)
    assert.is(await ask('/dogs/own'), '200 "own";q=1;w=3600')
    assert.is(await ask('/mice/limited'), '200 "mice";q=1;w=3600')
  })
})

test('rules with the same groupId count together, in any controller', async () => {
  const login = { groupId: 'login', ...one('login') }
  const cats = controller('cats', { login: [Throttle(login)] })
  const dogs = controller('dogs', { login: [Throttle({ groupId: 'login' })] })
  await withApp(appWith(base(), [cats, dogs]), async ({ ask }) => {
    assert.is(await ask('/cats/login'), '200 "login";q=1;w=3600')
    assert.is(await ask('/dogs/login'), '429 "login";q=1;w=3600')
  })
})

test('a controller inherits handlers with their rules, and has its own for the others', async () => {
  const cats = controller('cats', { a: [], own: [Throttle(one('own'))] }, [Throttle(one('cats'))])
  class Kittens extends cats {}
  Controller('kittens')(Kittens)
  Throttle(one('kittens'))(Kittens)
  await withApp(appWith(base(), [cats, Kittens]), async ({ ask }) => {
    assert.is(await ask('/kittens/a'), '200 "kittens";q=1;w=3600')
    assert.is(await ask('/cats/a'), '200 "cats";q=1;w=3600')
    assert.is(await ask('/kittens/own'), '200 "own";q=1;w=3600')
    assert.is(await ask('/cats/own'), '429 "own";q=1;w=3600')
  })
})

test('wrong rules fail when the app starts, and the error names the handler', async () => {
  const starts = async (rules: object) => {
    const cats = controller('cats', { own: [Throttle(rules)] })
    try {
      await (await start('express', appWith(base(), [cats]))).close()
    } catch (error) {
      return (error as Error).message
    }
    return 'it started'
  }
  assert.match(await starts({ default: { limit: 5, ttl: 60_000 } }), /@Throttle of Made\.own.*default/)
  assert.match(await starts({ limit: 5, window: '1m', groupId: '' }), /@Throttle of Made\.own\.groupId/)
  assert.match(await starts({ limit: 'five', window: '1m' }), /limit/)
  assert.is(await starts({ limit: 5, window: '1m' }), 'it started')
})

test('@Throttle takes an object only', () => {
  for (const rules of [5, null, undefined, '5 per minute']) {
    assert.throws(() => Throttle(rules as unknown as ThrottleRules), /@Throttle: expected an object such as/)
  }
})

test.run()
