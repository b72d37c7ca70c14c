import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WatchedObjects } from './watched-objects.js'

const object = (uid: string, resourceVersion: string) => ({ metadata: { uid, resourceVersion } })

test('objects are listed once and then watched; a watch goes on where it ended, and after an error from a new list', async () => {
  const stopping = new AbortController()
  const asked: string[] = []
  const told: string[] = []
  const watches = [
    [
      { type: 'ADDED', object: object('b', '11') },
      { type: 'DELETED', object: object('a', '12') },
      { type: 'BOOKMARK', object: { metadata: { resourceVersion: '20' } } },
    ],
    [{ type: 'ERROR', object: { code: 410, metadata: {} } }],
    [{ type: 'ERROR', object: { code: 500, metadata: {} } }],
    [],
  ]
  const watched = new WatchedObjects({
    api: {
      async get(path) {
        asked.push(`list ${path}`)
        return { metadata: { resourceVersion: '10' }, items: [object('a', '9'), object('ignored', '9')] }
      },
      async *watch(path) {
        asked.push(`watch from ${/resourceVersion=(\d+)/.exec(path)![1]}`)
        if (watches.length === 1) stopping.abort()
        yield* watches.shift()!
      },
    },
    path: '/api/v1/pods',
    parse: (raw) => ((raw as ReturnType<typeof object>).metadata.uid === 'ignored' ? undefined : raw),
    onChange: () => {
      if (asked.length === 2) seen.push([...watched.all!.keys()])
    },
    note: (sentence) => told.push(sentence),
  })
  const seen: string[][] = []
  assert.equal(watched.all, undefined)
  await watched.follow(stopping.signal)
  assert.deepEqual(seen, [['a', 'b'], ['b']])
  assert.deepEqual(asked, [
    'list /api/v1/pods?',
    'watch from 10',
    'watch from 20',
    'list /api/v1/pods?',
    'watch from 10',
    'list /api/v1/pods?',
    'watch from 10',
  ])
  assert.match(told.join(), /^watching \/api\/v1\/pods: the watch ended: .*500.*; listing again$/)
})

test('a watch ends at once when the process stops', async () => {
  const stopping = new AbortController()
  const watched = new WatchedObjects({
    api: {
      get: async () => ({ metadata: { resourceVersion: '10' }, items: [] }),
      async *watch(_path, signal) {
        setImmediate(() => stopping.abort())
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    },
    path: '/api/v1/pods',
    parse: (raw) => raw,
    onChange: () => {},
    note: (sentence) => assert.fail(sentence),
  })
  await watched.follow(stopping.signal)
})

test('an object that cannot be read is told of once, and hides no other', async () => {
  const stopping = new AbortController()
  const told: string[] = []
  const watched = new WatchedObjects({
    api: {
      get: async () => ({
        metadata: { resourceVersion: '10' },
        items: [object('odd', '9'), object('a', '9')],
      }),
      async *watch() {
        yield { type: 'MODIFIED', object: object('odd', '11') }
        yield { type: 'ADDED', object: object('b', '12') }
        stopping.abort()
      },
    },
    path: '/api/v1/pods',
    parse(raw) {
      if ((raw as ReturnType<typeof object>).metadata.uid === 'odd') throw new Error('expected a name')
      return raw
    },
    onChange: () => {},
    note: (sentence) => told.push(sentence),
  })
  await watched.follow(stopping.signal)
  assert.deepEqual([...watched.all!.keys()], ['a', 'b'])
  assert.deepEqual(told, ['/api/v1/pods: leaves out /odd: expected a name'])
})
