import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Closers, openOrClose, openOrCloseNow, withClosers } from './closers.js'

/** Logs opening and closing, in order. */
function openLog() {
  const log: string[] = []
  return {
    log,
    open: (closers: Closers, name: string) => {
      log.push(`open ${name}`)
      closers.add(async () => {
        log.push(`begin ${name}`)
        await turn()
        log.push(`end ${name}`)
      })
    },
  }
}

test('what was opened is given back in reverse order, one after the other, once', async () => {
  const { log, open } = openLog()
  const closers = new Closers()
  for (const name of ['a', 'b', 'c']) open(closers, name)
  await closers.close()
  await closers.close()
  assert.deepEqual(log.slice(3), ['begin c', 'end c', 'begin b', 'end b', 'begin a', 'end a'])
})

test('one that cannot be closed keeps none of the others open, and the first failure is thrown as it is', async () => {
  const closed: string[] = []
  const failures = [new Error('of b'), new Error('of c')]
  const closers = new Closers()
  closers.add(() => closed.push('a'))
  for (const failure of failures) closers.add(() => Promise.reject(failure))
  closers.add(() => closed.push('d'))
  await assert.rejects(closers.close(), (error) => error === failures[1])
  assert.deepEqual(closed, ['d', 'a'])
})

test('a failure in the middle of opening gives back what was opened before it, and nothing else', async () => {
  const { log, open } = openLog()
  const failure = new Error('b cannot be opened')
  const opening = openOrClose(async (closers) => {
    open(closers, 'a')
    await turn()
    open(closers, 'b')
    if (log.length > 0) throw failure
    open(closers, 'c')
  })
  await assert.rejects(opening, (error) => error === failure)
  assert.deepEqual(log, ['open a', 'open b', 'begin b', 'end b', 'begin a', 'end a'])
})

test('what was opened as a whole stays open', async () => {
  const { log, open } = openLog()
  assert.equal(
    await openOrClose(async (closers) => {
      open(closers, 'a')
      return 'all'
    }),
    'all',
  )
  assert.deepEqual(log, ['open a'])
})

for (const { name, openIt } of [
  {
    name: 'openOrClose',
    openIt: (closed: string[]) =>
      openOrClose(async (closers) => {
        closers.add(() => closed.push('a'))
        closers.add(() => Promise.reject(new Error('on closing')))
        throw new Error('on opening')
      }),
  },
  {
    name: 'openOrCloseNow',
    openIt: async (closed: string[]) =>
      openOrCloseNow((closers) => {
        closers.add(() => closed.push('a'))
        closers.add(() => {
          throw new Error('on closing')
        })
        throw new Error('on opening')
      }),
  },
  {
    name: 'withClosers',
    openIt: (closed: string[]) =>
      withClosers(async (closers) => {
        closers.add(() => closed.push('a'))
        closers.add(() => Promise.reject(new Error('on closing')))
        throw new Error('on opening')
      }),
  },
]) {
  test(`${name} says why it could not open, also where closing fails, too`, async () => {
    const closed: string[] = []
    await assert.rejects(openIt(closed), { message: 'on opening' })
    assert.deepEqual(closed, ['a'])
  })
}

test('what was opened for a use is given back after it, and a failure to do so is told', async () => {
  const { log, open } = openLog()
  const used = await withClosers(async (closers) => {
    open(closers, 'a')
    open(closers, 'b')
    await turn()
    log.push('use')
    return 7
  })
  assert.equal(used, 7)
  assert.deepEqual(log, ['open a', 'open b', 'use', 'begin b', 'end b', 'begin a', 'end a'])
  const closing = withClosers(async (closers) => closers.add(() => Promise.reject(new Error('on closing'))))
  await assert.rejects(closing, { message: 'on closing' })
})

test('what is opened without waiting is closed within the turn', () => {
  const closed: string[] = []
  assert.throws(
    () =>
      openOrCloseNow((closers) => {
        for (const name of ['a', 'b']) closers.add(() => closed.push(name))
        throw new Error('on opening')
      }),
    { message: 'on opening' },
  )
  assert.deepEqual(closed, ['b', 'a'])
  assert.equal(
    openOrCloseNow((closers) => {
      closers.add(() => closed.push('c'))
      return 7
    }),
    7,
  )
  assert.deepEqual(closed, ['b', 'a'])
})
