import { FIRST_CONTAINER_UID } from '../../model/lease.js'
import type { Peer } from '../../platform/peer-credentials.js'
import type { UserDirectory } from '../../platform/user-directory.js'
import type { Asker } from '../../policy/rights.js'

/** The groups among parties, without `group:`. */
export function listNamedGroups(parties: readonly string[]): readonly string[] {
  return [...new Set(parties.filter((party) => party.startsWith('group:')).map((party) => party.slice(6)))]
}

/**
 * Identifies a process of a container. Its root is the machine's and can be any user: nobody there is one of them, and
 * each uid is somebody else than the machine's.
 */
export function identifyJob({ uid }: Peer): Asker {
  return { uid: FIRST_CONTAINER_UID + uid, parties: [`user:${uid}@jobs`], shownBy: 'container' }
}

/** Identifies the asker: the user's name, and those of `groups` that the kernel says they are in. */
export async function identifyAsker(
  peer: Peer,
  { directory, groups }: { readonly directory: UserDirectory; readonly groups: readonly string[] },
): Promise<Asker> {
  const own = new Set([peer.gid, ...peer.groups])
  const ids = await Promise.all(groups.map((group) => directory.idOfGroup(group)))
  const member = groups.filter((_, index) => ids[index] !== undefined && own.has(ids[index]))
  return {
    uid: peer.uid,
    parties: [`user:${await directory.nameOf(peer.uid)}`, ...member.map((group) => `group:${group}`)],
    shownBy: 'socket',
  }
}

/** The user's name in the history. */
export function nameAsker({ uid, parties }: Asker): string {
  const user = parties.find((party) => party.startsWith('user:'))
  return user?.slice('user:'.length) ?? `uid-${uid}`
}
