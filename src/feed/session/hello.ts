import { DscError } from '../../failure/dsc-error.js'
import { ASSIGN_RULES, type AssignRule } from '../plan/assignment.js'
import { LAST_BATCH_RULES, type LastBatchRule } from '../plan/rank-sequence.js'
import type { LossRule } from '../stream/batch-stream.js'

/** A client's introduction: a worker of a rank. */
export interface Hello {
  readonly rank: number
  /** Name of one of the rank's loaders, each with its own position. Empty for a rank with one loader. */
  readonly reader: string
  readonly world: number
  readonly replicate: number
  readonly batchSize: number
  readonly last: LastBatchRule
  readonly assign: AssignRule
  readonly worker: number
  readonly workers: number
  /** How to handle batches with lost samples. */
  readonly onLoss: LossRule
  /** Number of batches that the client may hold at once, beside those it keeps; undefined: the feed chooses. */
  readonly depth: number | undefined
  /** Number of batches that the client keeps while it asks for others; undefined: the feed chooses. */
  readonly keep: number | undefined
  /** Values the client expects; a feed with another seed or order is the wrong one. */
  readonly seed: number | undefined
  readonly order: string | undefined
  readonly fingerprint: string | undefined
  readonly listing: string | undefined
  readonly pid: number
}

/** Where a client wants to start reading. */
export interface Start {
  /** undefined: the epoch after the last one that this rank has read. */
  readonly epoch: number | undefined
  readonly step: number
  /** Name of one pass over the data, shared by its workers. undefined: the feed finds out. */
  readonly run: string | undefined
}

/** Reads a client's first message; throws FEED_PROTOCOL for anything else. */
export function parseHello(raw: Readonly<Record<string, unknown>>): Hello {
  const last = LAST_BATCH_RULES.find((rule) => rule === (raw.last ?? 'drop'))
  if (!last)
    throw new DscError('FEED_PROTOCOL', `last is ${String(raw.last)}, not ${LAST_BATCH_RULES.join(', ')}`)
  const assign = ASSIGN_RULES.find((rule) => rule === (raw.assign ?? 'fixed'))
  if (!assign)
    throw new DscError('FEED_PROTOCOL', `assign is ${String(raw.assign)}, not ${ASSIGN_RULES.join(', ')}`)
  return {
    rank: wholeNumber(raw, 'rank', 0),
    reader: typeof raw.reader === 'string' ? raw.reader : '',
    world: wholeNumber(raw, 'world', 1),
    replicate: wholeNumber(raw, 'replicate', 1),
    batchSize: wholeNumber(raw, 'batch'),
    last,
    assign,
    worker: wholeNumber(raw, 'worker', 0),
    workers: Math.max(1, wholeNumber(raw, 'workers', 1)),
    onLoss: raw.onError === 'skip' ? 'skip' : 'raise',
    depth: raw.depth === undefined ? undefined : Math.max(1, wholeNumber(raw, 'depth')),
    keep: raw.keep === 'auto' ? undefined : wholeNumber(raw, 'keep', 0),
    seed: typeof raw.seed === 'number' ? raw.seed : undefined,
    order: typeof raw.order === 'string' ? raw.order : undefined,
    fingerprint: typeof raw.fingerprint === 'string' ? raw.fingerprint : undefined,
    listing: typeof raw.listing === 'string' ? raw.listing : undefined,
    pid: wholeNumber(raw, 'pid', 0),
  }
}

/** Reads the epoch and step at which a client wants to start; without an epoch, the one after its current one. */
export function parseStart(raw: Readonly<Record<string, unknown>>): Start {
  const isGiven = raw.epoch !== null && raw.epoch !== undefined
  return {
    epoch: isGiven ? epochOf(raw) : undefined,
    step: wholeNumber(raw, 'step', 0),
    run: typeof raw.run === 'string' ? raw.run : undefined,
  }
}

/** Batches encode their epoch in 32 bits. */
function epochOf(raw: Readonly<Record<string, unknown>>): number {
  const epoch = wholeNumber(raw, 'epoch')
  if (epoch < 2 ** 32) return epoch
  throw new DscError('FEED_PROTOCOL', `epoch must be below ${2 ** 32}, not ${epoch}`)
}

/** Returns a field of a message; throws FEED_PROTOCOL unless it is a whole number. */
export function wholeNumber(raw: Readonly<Record<string, unknown>>, name: string, fallback?: number): number {
  const value = raw[name] ?? fallback
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new DscError('FEED_PROTOCOL', `${name} must be a whole number, not ${JSON.stringify(value)}`)
}
