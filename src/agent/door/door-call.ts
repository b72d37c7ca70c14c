import type { z } from 'zod'
import type { Cache } from '../../cache/cache.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Peer } from '../../platform/peer-credentials.js'
import { type Asker, type Deed, judgeDeed, type RightRules } from '../../policy/rights.js'
import type { HandedAccess } from '../../sources/own-access.js'
import type { AgentAccess } from '../calls/agent-client.js'
import type { LineWork } from '../server/answer-in-lines.js'
import type { FirstReads } from './first-reads.js'
import type { GuardedDatasets } from './guarded-datasets.js'
import type { HandedAccesses } from './handed-access.js'
import type { UndeclaredBytes } from './undeclared-bytes.js'

/** The cache, rules and settings of the service behind the door. */
export interface DoorService {
  readonly cache: Cache
  readonly rules: RightRules
  readonly undeclared: UndeclaredBytes
  readonly guarded: GuardedDatasets
  readonly handed: HandedAccesses
  readonly reads: FirstReads
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
  /** The cache of the service. */
  readonly cache: Cache
  readonly asker: Asker
  /** Undefined: the asker is known by a folder alone. */
  readonly peer: Peer | undefined
  /** Asks the client for new keys of its user's, in the place of expired ones. */
  readonly askAccess: () => Promise<HandedAccess>
}

/** The price of an operation, and the right to it. */
interface Terms {
  /** Needed in any case; `answer` asks for rights that depend on the input. */
  readonly right?: Deed
  /** The places that it takes while it runs, if that is as long as a download, or as reading all copies. */
  readonly takes?: 'stagings' | 'upkeep'
  /** Writes nothing to the record. Every other one counts as a change. */
  readonly isLook?: true
  /** Takes leases: its answer has a `leaseId`, or such an answer for each node. */
  readonly isLease?: true
}

/** One kind of request. */
export interface Operation<Input = unknown> extends Terms {
  readonly input: z.ZodType<Input>
  /** Rejects with NOT_PERMITTED, or as the same command does without a door. The door sends null for undefined. */
  answer(call: DoorCall, input: Input): Promise<unknown>
}

/** Describes an operation. */
export function operation<Input>(
  input: z.ZodType<Input>,
  terms: Terms,
  answer: Operation<Input>['answer'],
): Operation {
  const described: Operation<Input> = { ...terms, input, answer }
  return described
}

/** Describes an operation that everybody may ask for, and that changes nothing. */
export function look<Input>(input: z.ZodType<Input>, answer: Operation<Input>['answer']): Operation {
  return operation(input, { isLook: true }, answer)
}

type WhoAsks = Pick<DoorCall, 'asker' | 'service'>

/** Throws NOT_PERMITTED unless the asker may do this. */
export function requireRight({ asker, service }: WhoAsks, deed: Deed): void {
  const judged = judgeDeed(asker, deed, service.rules)
  if (judged.may) return
  throw new DscError('NOT_PERMITTED', judged.why, {
    hint: `ask root, or a member of agent.admins in the dsc.yaml of the service${deed.kind === 'prepare' || deed.kind === 'upkeep' ? '; DSC_DOOR=none uses a cache of your own' : ''}`,
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
