import type { Dataset } from '../../model/dataset.js'
import { UserDirectory } from '../../platform/user-directory.js'
import { type Asker, judgeDeed, type RightRules } from '../../policy/rights.js'
import { identifyAsker, listNamedGroups } from '../door/identify-asker.js'
import { S3Error } from './s3-request.js'

/** The user of a client, as its connection or its key shows. `all`: a holder of the agents' token. */
export type GatewayUser =
  | { readonly kind: 'uid'; readonly uid: number }
  | { readonly kind: 'key'; readonly name: string }
  | { readonly kind: 'all' }

/** Throws an S3Error unless the client may read the dataset. */
export type RequireReader = (dataset: Dataset) => void

const directory = new UserDirectory()

/**
 * Judges which datasets a client of the gateway may read. `identify` finds out who it is, and is called only if some
 * datasets have readers.
 */
export async function judgeReaders(
  datasets: readonly Dataset[],
  rules: RightRules,
  identify: () => Promise<GatewayUser | undefined>,
): Promise<RequireReader> {
  const guarded = datasets.filter(({ readers }) => readers !== undefined)
  if (guarded.length === 0) return () => {}
  const user = await identify()
  if (user?.kind === 'all') return () => {}
  const groups = listNamedGroups([...rules.admins, ...guarded.flatMap(({ readers = [] }) => readers)])
  const asker = await describeAsker(user, groups)
  return ({ name, readers }) => {
    const judged = judgeDeed(asker, { kind: 'read', readers }, rules)
    if (!judged.may) throw new S3Error('AccessDenied', `${name}: ${judged.why}`)
  }
}

/** Whether the client may read the dataset. */
export function isReadable(dataset: Dataset, requireReader: RequireReader): boolean {
  try {
    requireReader(dataset)
    return true
  } catch (error) {
    if (error instanceof S3Error) return false
    throw error
  }
}

const NO_UID = -1

async function describeAsker(user: GatewayUser | undefined, groups: readonly string[]): Promise<Asker> {
  if (user === undefined || user.kind === 'all') return { uid: NO_UID, parties: [], shownBy: 'key' }
  const name = user.kind === 'key' ? user.name : await directory.nameOf(user.uid)
  const peer = { uid: NO_UID, gid: NO_UID, pid: 0, groups: await directory.groupsOf(name) }
  if (user.kind === 'uid') return identifyAsker({ ...peer, uid: user.uid }, { directory, groups })
  const { parties } = await identifyAsker(peer, { directory, groups })
  return { uid: NO_UID, parties: [`user:${name}`, ...parties.slice(1)], shownBy: 'key' }
}
