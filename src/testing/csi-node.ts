import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { VolumeNotes } from '../agent/csi/volume-notes.js'
import type { VolumeRequest } from '../agent/csi/volume-request.js'
import { Volumes } from '../agent/csi/volumes.js'
import type { Cache } from '../cache/cache.js'
import { openExampleCache } from './example-cache.js'
import { openHeldSource } from './held-source.js'
import { makeMemoryMounter } from './memory-mounter.js'

export const POD = { uid: 'u-1', namespace: 'team-a', name: 'reader' }
export const TARGET = '/pods/u-1/data'
export const REQUEST: VolumeRequest = {
  volumeId: 'csi-1',
  target: TARGET,
  dataset: 'flowers',
  pod: POD,
  secrets: {},
}
/** A deadline that never comes. */
export const LATER = Number.POSITIVE_INFINITY

/** A node whose pods may have the datasets `flowers` and `birds`, of one file that a test can hold back. */
export async function makeCsiNode(context: TestContext, changes: Partial<Cache> = {}) {
  const source = openHeldSource({ 'a.txt': 'sample' })
  context.after(() => source.release())
  let nowMs = Date.now()
  const { cache } = await openExampleCache(context, {
    openSource: async () => source,
    nowMs: () => nowMs,
    ...changes,
  })
  const folder = mkdtempSync(join(cache.root, 'notes-'))
  const mounter = makeMemoryMounter()
  const told: string[] = []
  const late: string[] = []
  const datasets = ['flowers', 'birds'].map((name) => ({
    name,
    source: `s3://bucket/${name}/`,
    include: [],
    exclude: [],
  }))
  const start = (own = cache, declared = datasets) =>
    new Volumes({
      cache: own,
      catalog: { declared, rules: { datasets: {}, sources: {} } },
      notes: new VolumeNotes(folder, (sentence) => told.push(sentence)),
      mounter,
      onPrivate: () => {},
      onLateMount: ({ name }) => late.push(name),
      note: (sentence) => told.push(sentence),
    })
  return {
    ...{ cache, source, mounter, told, late, start, folder },
    notes: () => new VolumeNotes(folder, (sentence) => told.push(sentence)).list(),
    leases: async () =>
      (await cache.record.listLeases({ purpose: 'use' })).map(({ task, expiresAtMs }) => [task, expiresAtMs]),
    reconcile: async (volumes: Volumes) =>
      volumes.reconcile(await cache.record.listLeases({ node: cache.node })),
    wait: (ms: number) => {
      nowMs += ms
    },
  }
}

/** The leases of a node whose only pod is `POD`: task and end. */
export const HELD = [['pod:team-a/reader', null]]
