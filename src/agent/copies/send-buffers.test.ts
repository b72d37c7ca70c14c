import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SendBuffers } from './send-buffers.js'

test('memory is used again, but not what a failed answer may still be sent from', async () => {
  const buffers = new SendBuffers()
  const lend = (bytes: number) => {
    let lent: Buffer | undefined
    return buffers
      .use(bytes, async (buffer) => {
        lent = buffer
      })
      .then(() => lent!)
  }
  const first = await lend(1000)
  assert.equal(await lend(1000), first)
  assert.ok(first.length >= 1000)
  assert.notEqual(await lend(10_000_000), first)
  let broken: Buffer | undefined
  const failing = buffers.use(1000, async (buffer) => {
    broken = buffer
    throw new Error('the client has gone')
  })
  await assert.rejects(failing, /gone/)
  assert.notEqual(await lend(1000), broken)
})

test('a small buffer that was given back is lent again, one that is still sent from is not', () => {
  const buffers = new SendBuffers()
  const [first, second] = [buffers.lendSmall(), buffers.lendSmall()]
  assert.ok(first !== second)
  buffers.takeBack(first)
  assert.ok(buffers.lendSmall() === first)
  assert.ok(buffers.lendSmall() !== second)
})

test('many clients at once get small pieces', async () => {
  const buffers = new SendBuffers()
  const { promise: all, resolve: end } = Promise.withResolvers<void>()
  let bytes = 0
  const uses = Array.from({ length: 3000 }, () =>
    buffers.use(10_000_000, (buffer) => {
      bytes += buffer.length
      return all
    }),
  )
  assert.ok(bytes < 300e6, `${bytes} bytes`)
  end()
  await Promise.all(uses)
})
