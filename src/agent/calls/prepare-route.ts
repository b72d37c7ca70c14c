import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Cache } from '../../cache/cache.js'
import { type Prepared, type PrepareProgress, prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { cancelReservation, type Reservation, reserveDataset } from '../../cache/prepare/reserve-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { readBody } from '../../frames/body.js'
import { parseByteRate } from '../../model/byte-rate.js'
import { parseStripe, type Stripe } from '../../model/copy.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { isDialect } from '../../model/told-dialect.js'
import { answerInLines, type ErrorLine } from '../server/answer-in-lines.js'
import { parseLeaseRequest } from './parse-lease-request.js'

const TEXTS = ['name', 'source', 'endpoint', 'region', 'profile', 'format'] as const
const CLAIMS = ['pathStyle', 'anonymous', 'requesterPays'] as const
const LISTS = ['include', 'exclude', 'columns', 'readers'] as const

/** A request to an agent to prepare a dataset on its node. */
export interface PrepareCall {
  readonly dataset: Dataset
  readonly lease: LeaseRequest
  readonly isRefresh: boolean
  /** As in `planEviction`; absent from agents of earlier versions, which evict as for any job. */
  readonly isPrefetch?: boolean | undefined
  /** All nodes that are asked to prepare the dataset at this time. */
  readonly sharedWith: readonly string[]
  /** Overrides this node's own limit. */
  readonly bandwidthBytesPerSecond?: number | undefined
  /** The stripe for this node; absent: the whole dataset. */
  readonly stripe?: Stripe | undefined
  readonly version?: string | undefined
  /** Lists the source again, even if an earlier attempt already listed it. */
  readonly isRelisted?: boolean
}

/** One line of the answer. The last line is not progress. */
export type PrepareLine =
  | { readonly progress: PrepareProgress }
  | { readonly prepared: Prepared }
  | { readonly reserved: Reservation }
  | { readonly cancelled: string }
  | ErrorLine

const MAX_BODY_BYTES = 256 * 1024

interface Answering {
  readonly cache: Cache
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly stopping: AbortSignal
  /** Writes failures to the agent's log. */
  readonly note: (sentence: string) => void
}

/** Answers `POST /v2/prepare` with lines of JSON. A client that hangs up interrupts the download; it can resume. */
export async function answerPrepare(answering: Answering): Promise<void> {
  const { cache, request } = answering
  const call = parseCall(await readJson(request), cache.nowMs())
  await answerInLines(answering, async (options) => {
    const limited = limitBandwidth(cache, call.bandwidthBytesPerSecond)
    return { prepared: await prepareDataset(limited, { ...call, mayWait: true }, options) }
  })
}

/** Answers `POST /v1/reserve`: reserves room for a copy without downloading it. */
export async function answerReserve(answering: Answering): Promise<void> {
  const { cache, request } = answering
  const call = parseCall(await readJson(request), cache.nowMs())
  await answerInLines(answering, async (options) => ({
    reserved: await reserveDataset(cache, { ...call, isRelisted: call.isRelisted === true }, options),
  }))
}

/** Answers `POST /v1/cancel`: cancels a reservation. */
export async function answerCancel(answering: Answering): Promise<void> {
  const raw = (await readJson(answering.request)) as { readonly copyId?: unknown } | null
  const copyId = String(raw?.copyId)
  await answerInLines(answering, async () => {
    await cancelReservation(answering.cache, copyId)
    return { cancelled: copyId }
  })
}

/** The cache with this limit instead of the node's own. */
export function limitBandwidth(cache: Cache, bandwidthBytesPerSecond: number | undefined): Cache {
  if (bandwidthBytesPerSecond === undefined) return cache
  return { ...cache, nodeBudget: { ...cache.nodeBudget, bandwidthBytesPerSecond } }
}

/** Reads the JSON of a call. Rejects with USAGE if it is no JSON, or longer than a call ever is. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request, MAX_BODY_BYTES)
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new DscError('USAGE', 'expected JSON in the body', { cause: error })
  }
}

/** Checks every field that decides where files go, who holds them, and for how long. */
function parseCall(raw: unknown, nowMs: number): PrepareCall {
  const call = (raw ?? {}) as Partial<PrepareCall>
  let dataset: Dataset
  let lease: LeaseRequest
  try {
    dataset = parseCalledDataset(call.dataset)
    lease = parseLeaseRequest(call.lease, nowMs)
    if (call.bandwidthBytesPerSecond !== undefined) parseByteRate(call.bandwidthBytesPerSecond)
    if (call.stripe !== undefined) parseStripe(call.stripe)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('USAGE', error.message, { cause: error })
  }
  const { stripe, version, bandwidthBytesPerSecond } = call
  return {
    dataset,
    lease,
    isRefresh: call.isRefresh === true,
    isPrefetch: call.isPrefetch === true,
    sharedWith: Array.isArray(call.sharedWith) ? call.sharedWith.map(String) : [],
    bandwidthBytesPerSecond,
    stripe: stripe && parseStripe(stripe),
    version: typeof version === 'string' ? version : undefined,
    isRelisted: call.isRelisted === true,
  }
}

/**
 * Reads the dataset definition that a caller of an agent sends: it decides where files go, and is written to the
 * record. Throws a RangeError that names the problem.
 */
function parseCalledDataset(raw: unknown): Dataset {
  if (typeof raw !== 'object' || raw === null) throw new RangeError('expected a dataset')
  const fields = raw as Readonly<Record<string, unknown>>
  const check = (names: readonly string[], expected: string, isRight: (value: unknown) => boolean) => {
    for (const name of names)
      if (fields[name] !== undefined && !isRight(fields[name]))
        throw new RangeError(`dataset.${name}: expected ${expected}, found ${show(fields[name])}`)
  }
  check(TEXTS, 'a text', isText)
  check(CLAIMS, 'true or false', (value) => typeof value === 'boolean')
  check(['dialect'], 'delimiter, quote or header of CSV', isDialect)
  check(LISTS, 'a list of texts', (value) => Array.isArray(value) && value.every(isText))
  const dataset = { include: [], exclude: [], ...fields } as unknown as Dataset
  parseDatasetName(String(dataset.name))
  parseSourceUrl(String(dataset.source))
  return dataset
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function show(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 80)
}
