import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Source } from '../../sources/source.js'
import { OrderOfNeed } from '../arrivals/order-of-need.js'
import type { ObjectDownload } from './object-download.js'
import { openLanes } from './open-lanes.js'
import type { FetchTask } from './task-lanes.js'

const OBJECTS = 4
const READER = 'a feed'
const DIRECT = ['direct'] as const

function taskOf(key: string): FetchTask {
  return { id: 0, key, partOffset: 0, range: { offset: 0, length: 1 }, bytes: 1, run: async () => {} }
}

/** Keys of the tasks in the order of handing out, until there are no more. */
function handedOut(options: { readonly parts: number; readonly mayTakeParts: boolean }): readonly string[] {
  let { parts } = options
  const nextPart = () => (parts-- > 0 ? taskOf('part') : undefined)
  const download = {
    get hasParts() {
      return parts > 0
    },
    nextPart,
    nextRange: () => undefined,
    nextHurriedPart: () => undefined,
    taskOf: ({ id }: ManifestEntry) => taskOf(String(id)),
  } as unknown as ObjectDownload
  const entries = Array.from({ length: OBJECTS }, (_, index) => ({ id: index + 1 }) as ManifestEntry)
  const manifest = {
    missingPages: () => [entries],
    get: (id: number) => entries[id - 1],
  } as unknown as Manifest
  const need = new OrderOfNeed<never>(OBJECTS, []) as OrderOfNeed<never>
  need.addOrder(READER as never, [3])
  need.want(READER as never, 4)
  const mayTakeParts = () => options.mayTakeParts
  const lanes = openLanes({ source: {} as Source, manifest, download, need, mayTakeParts })
  const keys: string[] = []
  const free = { wanted: DIRECT, ordered: DIRECT, listed: DIRECT }
  for (let next = lanes.next(free); next; next = lanes.next(free)) keys.push(next.task.key)
  return keys
}

for (const { name, options, expected } of [
  {
    name: 'what is waited for, what was begun, what is ordered, the rest',
    options: { parts: 2, mayTakeParts: true },
    expected: ['4', 'part', 'part', '3', '1', '2'],
  },
  {
    name: 'while enough is under way no object before the parts of those that were begun',
    options: { parts: 1, mayTakeParts: false },
    expected: ['4'],
  },
])
  test(`openLanes hands out ${name}`, () => {
    assert.deepEqual(handedOut(options), expected)
  })

test('to begin an object waits for no other node, which its bytes do', () => {
  const begin = { ...taskOf('begin'), bytes: 0 }
  const tasks = [begin, taskOf('part')]
  const download = {
    hasParts: false,
    nextPart: () => tasks.shift(),
    nextRange: () => undefined,
    nextHurriedPart: () => undefined,
  } as unknown as ObjectDownload
  const manifest = { missingPages: () => [] } as unknown as Manifest
  const need = new OrderOfNeed<never>(0, []) as OrderOfNeed<never>
  const source = { isAwaited: () => true } as unknown as Source
  const lanes = openLanes({ source, manifest, download, need, mayTakeParts: () => true })
  const free = { wanted: DIRECT, ordered: DIRECT, listed: DIRECT }
  assert.equal(lanes.next(free)?.task, begin)
  assert.equal(lanes.next(free), undefined)
})
