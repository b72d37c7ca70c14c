import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createDoorApi, type FindOwnAccess } from '../agent/door/door-api.js'
import { DoorClient } from '../agent/door/door-client.js'
import type { DoorLimits } from '../agent/door/door-limits.js'
import { openDoorRecord } from '../agent/door/door-record.js'
import { openDoor } from '../agent/door/door-server.js'
import { placeOfJobs } from '../agent/door/door-socket.js'
import { GuardedDatasets } from '../agent/door/guarded-datasets.js'
import { UndeclaredBytes } from '../agent/door/undeclared-bytes.js'
import { createMetrics } from '../agent/metrics/metrics.js'
import type { Cache } from '../cache/cache.js'
import type { Peer } from '../platform/peer-credentials.js'
import { openExampleCache } from './example-cache.js'
import { temporaryDirectory } from './temporary-directory.js'

/** Users at the door: two that may do what everybody may, and the owner of the service. */
export const ADA = 64_001
export const EVE = 64_003
/** An admin who is no root. */
export const ADMIN = 64_004
const OWNER = 64_010

/** The credentials with which the service asks agents of other nodes. */
export const SHOWN = { token: 'a token that all agents share', ca: 'an authority' } as const

/** A service over an example cache. The test says who knocks; the kernel's own word is tested by the end. */
export async function openService(context: TestContext, changes: Partial<Cache> = {}, limits?: DoorLimits) {
  const example = await openExampleCache(context, changes)
  const flowers = example.makeDataset('flowers', { 'a.txt': 'rose' })
  Object.assign(example.cache, { declared: [flowers, ...(changes.declared ?? [])] })
  const folder = join(await temporaryDirectory(context), 'run')
  const path = join(folder, 'dsc.sock')
  const asker = { uid: ADA }
  const notes: string[] = []
  const stopping = new AbortController()
  const open = async (isForJobs = false) => {
    const door = await openDoor({
      path: isForJobs ? placeOfJobs(path) : path,
      cache: example.cache,
      rules: { ownerUid: OWNER, admins: [`user:uid-${ADMIN}`] },
      undeclared: new UndeclaredBytes(9 * 1024 * 1024),
      guarded: new GuardedDatasets(example.cache),
      access: SHOWN,
      onPrivate: () => {},
      isForJobs,
      version: '1.2.3',
      metrics: createMetrics(),
      stopping: stopping.signal,
      limits,
      note: (sentence) => void notes.push(sentence),
      readPeer: (): Peer => ({ uid: asker.uid, gid: asker.uid, groups: [], pid: process.pid }),
    })
    context.after(() => door.stop(0))
    return door
  }
  const door = await open()
  const client = new DoorClient(path, { onAway: () => {}, patienceMs: 300 })
  const as = (uid: number, findOwnAccess?: FindOwnAccess) => {
    asker.uid = uid
    return {
      api: createDoorApi(client, findOwnAccess ? { uid, findOwnAccess } : {}),
      record: openDoorRecord(client, 0),
    }
  }
  return { ...example, flowers, path, client, as, notes, stopping, door, reopen: open }
}

export const signal: AbortSignal = new AbortController().signal
/** A request of this task, without the dataset. */
export const prepareAs = (task: string) => ({
  lease: { task, holder: { kind: 'ttl' as const }, expiresAtMs: Date.now() + 3_600_000 },
  isRefresh: false,
  mayWait: true,
})
export const silently: { readonly signal: AbortSignal; readonly onProgress: () => void } = {
  signal,
  onProgress: () => {},
}
