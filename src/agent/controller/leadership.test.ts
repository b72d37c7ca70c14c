import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiRefusal } from '../csi/api-server.js'
import { Leadership } from './leadership.js'

/** A Lease in an API server that refuses what was not read last. */
function makeLease() {
  let version = 0
  let lease: { metadata: { resourceVersion?: string } } | undefined
  const api = {
    async get() {
      if (lease === undefined) throw new ApiRefusal(404, 'not found')
      return structuredClone(lease)
    },
    async send(method: 'POST' | 'PUT', _path: string, raw: unknown) {
      const object = raw as NonNullable<typeof lease>
      if (method === 'PUT' && object.metadata.resourceVersion !== String(version))
        throw new ApiRefusal(409, 'conflict')
      lease = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } }
    },
  }
  return { api, read: () => lease as unknown as { readonly spec: Record<string, unknown> } }
}

test('one of two replicas leads; the other takes over at once when it resigns', async () => {
  const { api, read } = makeLease()
  const told: string[] = []
  const start = (identity: string) => {
    const stopping = new AbortController()
    const means = { api, namespace: 'dsc', name: 'dsc-controller', identity }
    const leadership = new Leadership({ ...means, note: (sentence) => told.push(sentence) })
    return { leadership, stopping, working: leadership.compete(stopping.signal) }
  }
  const first = start('one')
  await new Promise(setImmediate)
  const second = start('two')
  await new Promise(setImmediate)
  assert.deepEqual([first.leadership.isLeading, second.leadership.isLeading], [true, false])
  assert.match(String(read().spec.renewTime), /\.\d{6}Z$/)
  for (const each of [first, second]) each.stopping.abort()
  await Promise.all([first.working, second.working])
  await first.leadership.resign()
  assert.equal(read().spec.holderIdentity, '')
  const third = start('three')
  await new Promise(setImmediate)
  assert.deepEqual([first.leadership.isLeading, third.leadership.isLeading], [false, true])
  third.stopping.abort()
  await third.working
  assert.deepEqual(told, [])
})
