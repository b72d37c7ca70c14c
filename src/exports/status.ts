import { describeStatus } from '../cache/status/describe-status.js'
import { measureOwnNode } from '../cache/status/measure-own-node.js'
import type { CopyAnswer, StatusAnswer } from '../cache/status/status-answer.js'
import { readStatus } from '../cache/status/status-snapshot.js'
import { atEnd } from '../failure/closers.js'
import { type CallOptions, openSurroundings } from './surroundings.js'

/** Selects what the status shows. */
export interface StatusOptions extends CallOptions {
  /** Only this node. */
  readonly node?: string
  /** Only copies of this dataset. */
  readonly dataset?: string
}

/** Nodes, copies, leases and transfers: the answer of `dsc status --json`. Times are ISO 8601. */
export type Status = StatusAnswer

/** One copy of a dataset on one node. */
export type CopyStatus = CopyAnswer

/** Reads once what `dsc status` shows. Rejects with a DscError, whose `code` identifies the failure. */
export async function status(options: StatusOptions = {}): Promise<Status> {
  const surroundings = openSurroundings(options)
  const { node, dataset } = options
  await using _ = atEnd(() => surroundings.close())
  const record = await surroundings.openRecord()
  const nowMs = surroundings.nowMs()
  const ownNode = await measureOwnNode(await surroundings.config(), nowMs)
  const snapshot = await readStatus(record, { node, dataset }, { nowMs, ownNode })
  const described = describeStatus(snapshot)
  return { ...described, copies: [...described.copies] }
}
