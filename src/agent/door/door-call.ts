import type { Cache } from '../../cache/cache.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Peer } from '../../platform/peer-credentials.js'
import { type Asker, type Deed, judgeDeed, type RightRules } from '../../policy/rights.js'
import type { HandedAccess } from '../../sources/own-access.js'
import type { AgentAccess } from '../calls/agent-client.js'
import type { LineWork } from '../server/answer-in-lines.js'
import type { GuardedDatasets } from './guarded-datasets.js'
import type { HandedAccesses } from './handed-access.js'
import type { Fields } from './read-input.js'
import type { UndeclaredBytes } from './undeclared-bytes.js'

/** The cache, rules and settings of the service behind the door. */
export interface DoorService {
  readonly cache: Cache
  readonly rules: RightRules
  readonly undeclared: UndeclaredBytes
  readonly guarded: GuardedDatasets
  readonly handed: HandedAccesses
  /** Called before anything is staged that is for one user alone. */
  readonly onPrivate: () => void
  /** The credentials with which the service asks agents of other nodes. */
  readonly access?: AgentAccess | undefined
  /** The version of dsc. */
  readonly version: string
}

/** One request at the door, and who asks. */
export interface DoorCall extends Omit<LineWork, 'write'> {
  readonly service: DoorService
  readonly asker: Asker
  /** Undefined: the asker is known by a folder alone. */
  readonly peer: Peer | undefined
  readonly input: Fields
  /** Asks the client for new keys of its user's, in the place of expired ones. */
  readonly askAccess: () => Promise<HandedAccess>
}

/** The answer of an operation: one object, or a list, of which each item is a line of its own. */
export type DoorResult = { readonly result: unknown } | { readonly items: readonly unknown[] }

/** Does one kind of request. Rejects with NOT_PERMITTED, or as the same command does without a door. */
export type Operation = (call: DoorCall) => Promise<DoorResult>

type WhoAsks = Pick<DoorCall, 'asker' | 'service'>

/** Throws NOT_PERMITTED unless the asker may do this. */
export function requireRight({ asker, service }: WhoAsks, deed: Deed): void {
  const judged = judgeDeed(asker, deed, service.rules)
  if (judged.may) return
  throw new DscError('NOT_PERMITTED', judged.why, {
    hint: `ask root, or a member of agent.admins in the dsc.yaml of the service${deed.kind === 'prepare' ? '; DSC_DOOR=none uses a cache of your own' : ''}`,
  })
}

/** Throws NOT_PERMITTED unless the asker may read the dataset of this name, and so hear of its copies. */
export async function requireReader(call: WhoAsks, name: string): Promise<void> {
  requireRight(call, { kind: 'read', readers: await call.service.guarded.readersOf(name) })
}

/** A function that tells whether the asker may read one of these datasets, and so hear of its copies. */
export async function findShown(
  { asker, service }: WhoAsks,
  names: Iterable<string>,
): Promise<(name: string) => boolean> {
  const readers = await service.guarded.readersAmong(names)
  return (name) => judgeDeed(asker, { kind: 'read', readers: readers.get(name) }, service.rules).may
}

/** The rows about datasets that the asker may read. */
export async function keepShown<Row extends { readonly dataset: string }>(
  call: WhoAsks,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const isShown = await findShown(
    call,
    rows.map(({ dataset }) => dataset),
  )
  return rows.filter(({ dataset }) => isShown(dataset))
}
