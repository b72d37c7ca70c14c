import { formatNames } from '../model/format-names.js'

/** Readers that a refusal names; the rest are counted. */
const NAMED_READERS = 5

/** A user at the node's door, as the kernel named them. */
export interface Asker {
  readonly uid: number
  /** `user:ada`, and `group:ops` for each group that a rule names. */
  readonly parties: readonly string[]
  /** Whether the kernel named the user, of this machine (`socket`) or of a container, or a key of the gateway does. */
  readonly shownBy: 'socket' | 'container' | 'key'
}

/** The rights of users as dsc.yaml gives them, and the user of the service. */
export interface RightRules {
  /** Uid of the service, which owns the cache. */
  readonly ownerUid: number
  /** `user:…` and `group:…`. */
  readonly admins: readonly string[]
}

/** An action that an asker wants. */
export type Deed =
  | { readonly kind: 'look' }
  /** `isDeclared`: dsc.yaml or an admin named the source, so that it is read with the service's credentials. */
  | { readonly kind: 'prepare'; readonly source: string; readonly isDeclared: boolean }
  /** Have a source read with credentials that the asker hands over. `isKnown`: it is where dsc.yaml lets them go. */
  | { readonly kind: 'hand-over'; readonly isKnown: boolean }
  /** Read a dataset, or see its copies, leases and history. `readers`: of its definition; undefined: everybody. */
  | { readonly kind: 'read'; readonly readers: readonly string[] | undefined }
  /** Release, renew or hand over a lease. `holderUid`: for whom the door took it; undefined: the owner's own. */
  | { readonly kind: 'end-lease'; readonly holderUid: number | undefined }
  | { readonly kind: 'lock' }
  | { readonly kind: 'evict' }
  /** Take back a deed of the last day. `isOwn`: the asker did it. */
  | {
      readonly kind: 'undo'
      readonly of: 'evict' | 'cleanup' | 'unlock' | 'release'
      readonly isOwn: boolean
    }
  | { readonly kind: 'declare' }
  | { readonly kind: 'upkeep'; readonly of: 'clean up the cache' | 'repair copies' | 'adopt folders' }
  /** Have agents of other nodes stage a dataset. `isPaced`: faster or slower than those nodes themselves would. */
  | { readonly kind: 'prepare-elsewhere'; readonly isDeclared: boolean; readonly isPaced: boolean }

/** The answer to "may they?": `why` is who may, for a sentence such as "only an admin may lock copies". */
export type Judgement = { readonly may: true } | { readonly may: false; readonly why: string }

/**
 * Judges an action at the door of a node's service. First match wins:
 *
 * | deed                                        | may                                        |
 * |---------------------------------------------|--------------------------------------------|
 * | anything                                    | root, the service's own user, `agent.admins` |
 * | look at datasets, copies, leases, history   | everybody; with `readers:`, those alone    |
 * | read or verify a dataset, prepare a declared one | everybody; with `readers:`, those alone |
 * | prepare a declared dataset on other nodes   | the same, but nobody in a container        |
 * | prepare a public `hf://` or `https://` URL  | everybody, without credentials             |
 * | prepare any other URL (`file://`, `s3://`)  | admins                                     |
 * | the same with credentials handed over       | everybody, at AWS, the hub, and endpoints of dsc.yaml |
 * | release, renew, hand over a lease           | the user whom it was taken for             |
 * | lock, unlock, evict, declare datasets       | admins                                     |
 * | clean up, repair, adopt                     | admins                                     |
 * | take back a release                         | the user who released                      |
 * | take back an eviction, cleanup or unlock    | admins                                     |
 *
 * Nobody in a container is an admin, or one of the readers: its root can be any user. Nor does a key of the gateway make
 * an admin: it has the name that its maker gave it.
 */
export function judgeDeed(asker: Asker, deed: Deed, rules: RightRules): Judgement {
  if (isAdmin(asker, rules)) return { may: true }
  switch (deed.kind) {
    case 'look':
      return { may: true }
    case 'read':
      return mayRead(asker, deed.readers)
        ? { may: true }
        : no(`only ${formatNames(deed.readers ?? [], NAMED_READERS)} may read this dataset`)
    case 'prepare':
      return deed.isDeclared || isPublic(deed.source)
        ? { may: true }
        : no('an admin may stage this source for you; anybody may stage hf:// and https:// URLs')
    case 'hand-over':
      if (asker.shownBy !== 'socket') return no('credentials are handed over outside of containers alone')
      return deed.isKnown
        ? { may: true }
        : no('credentials go to AWS, the hub and the endpoints of declared datasets alone')
    case 'end-lease':
      return deed.holderUid === asker.uid ? { may: true } : no('this lease is of another user')
    case 'lock':
      return no('only an admin may lock and unlock copies')
    case 'evict':
      return no('only an admin may evict copies')
    case 'undo':
      if (deed.of !== 'release')
        return no(`only an admin may take back ${deed.of === 'unlock' ? 'an unlock' : 'an eviction'}`)
      return deed.isOwn ? { may: true } : no('another user released this lease')
    case 'declare':
      return no('only an admin may name datasets')
    case 'upkeep':
      return no(`only an admin may ${deed.of}`)
    case 'prepare-elsewhere':
      if (asker.shownBy !== 'socket') return no('other nodes stage for processes outside of containers alone')
      if (!deed.isDeclared)
        return no('an admin may stage this source on other nodes; anybody may stage declared datasets there')
      return deed.isPaced ? no('only an admin may override the bandwidth of other nodes') : { may: true }
  }
}

/** Whether they may do everything. */
export function isAdmin({ uid, parties, shownBy }: Asker, { ownerUid, admins }: RightRules): boolean {
  if (shownBy !== 'socket') return false
  return uid === 0 || uid === ownerUid || admins.some((admin) => parties.includes(admin))
}

function mayRead({ parties }: Asker, readers: readonly string[] | undefined): boolean {
  return readers === undefined || readers.some((reader) => parties.includes(reader))
}

/**
 * A source that the service may read for anybody, without credentials. Hosts are names with a dot: nothing that only
 * the service's own address could reach.
 */
export function isPublic(source: string): boolean {
  if (source.startsWith('hf://')) return true
  const host = /^https:\/\/([^/:?#@]+)(?::\d+)?(?:[/?#]|$)/.exec(source)?.[1]
  return host !== undefined && /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/i.test(host) && !isLocal(host)
}

function isLocal(host: string): boolean {
  return /(^|\.)(localhost|local|localdomain|internal|home\.arpa)$/i.test(host)
}

function no(why: string): Judgement {
  return { may: false, why }
}
