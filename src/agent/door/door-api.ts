import { randomUUID } from 'node:crypto'
import type { NodeApi } from '../../cache/api/node-api.js'
import { isDscError } from '../../failure/dsc-error.js'
import { type Dataset, findOwner, isUndeclared, nameForOwner } from '../../model/dataset.js'
import type { HandedAccess } from '../../sources/own-access.js'
import type { AskOptions, DoorClient } from './door-client.js'

/** Finds what this user shows to a source; undefined: nothing. */
export type FindOwnAccess = (dataset: Dataset) => Promise<HandedAccess | undefined>

/** Answers to a URL that its user's own credentials may change. */
const REFUSALS = ['NOT_PERMITTED', 'DATASET_UNKNOWN', 'SOURCE_DENIED', 'SOURCE_NOT_FOUND'] as const

interface DoorApiOptions {
  /** At most so fast, if given. */
  readonly bandwidthBytesPerSecond?: number | undefined
  /** This user, as the service sees them; undefined: it takes no credentials. */
  readonly uid?: number | undefined
  readonly findOwnAccess?: FindOwnAccess
}

/** The `NodeApi` that asks the node's service. */
export function createDoorApi(client: DoorClient, options: DoorApiOptions): NodeApi {
  const { bandwidthBytesPerSecond } = options
  return {
    prepare: (request, { firstRead, ...ways }) => {
      const isReadWhileComing = firstRead !== undefined
      const call = firstRead && randomUUID()
      // An earlier version of the service does not know it, and says that its copy was waited for.
      void firstRead?.then((waitedMs) => client.ask('noteRead', { call, waitedMs }).catch(() => {}))
      const asked = { ...request, isReadWhileComing, call, bandwidthBytesPerSecond }
      return askWithOwn(client, 'prepare', { asked, ways, options })
    },
    planPrepare: (asked, { signal }) =>
      askWithOwn(client, 'planPrepare', { asked, ways: { signal }, options }),
    planEviction: (selection, { isOwn }) => client.ask('planEviction', { selection, isOwn }),
    evict: (selection, { by }) => client.ask('evict', { selection, isKept: by !== undefined }),
    listDeeds: () => client.ask('listDeeds', {}),
    undo: ({ id }) => client.ask('undo', { id }),
    verify: (request, ways) => client.ask('verify', request, ways),
    verifyReceipt: (used, ways) => {
      const named = used.map(({ dataset, version, source, stripe }) => ({ dataset, version, source, stripe }))
      return client.ask('verifyReceipt', { used: named }, ways)
    },
    cleanUp: ({ by: _, ...request }, ways) => client.ask('cleanUp', request, ways),
    adopt: (request, ways) => client.ask('adopt', request, ways),
    takeRepository: (request, ways) => client.ask('takeRepository', request, ways),
  }
}

/**
 * Asks for a dataset. Where the service may not read a URL, or the source refuses it, this user's own credentials are
 * looked for, and handed over for this request alone.
 */
async function askWithOwn<Result>(
  client: DoorClient,
  operation: string,
  {
    asked,
    ways,
    options,
  }: {
    readonly asked: { readonly dataset: Dataset }
    readonly ways: AskOptions
    readonly options: DoorApiOptions
  },
): Promise<Result> {
  const { dataset } = asked
  const { uid, findOwnAccess } = options
  try {
    return await client.ask<Result>(operation, asked, ways)
  } catch (error) {
    if (uid === undefined || !findOwnAccess || !isDscError(error, ...REFUSALS)) throw error
    const owner = findOwner(dataset.name)
    if (!isUndeclared(dataset) || (owner ?? uid) !== uid) throw error
    const own = await findOwnAccess(dataset)
    if (own === undefined) throw error
    const name = owner === undefined ? nameForOwner(dataset.name, uid) : dataset.name
    const findAccess = () => findOwnAccess(dataset)
    return client.ask(operation, { ...asked, dataset: { ...dataset, name }, own }, { ...ways, findAccess })
  }
}
