import type { CopyUse } from '../../model/copy.js'
import { countOrigins } from '../../model/origins-noted.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import type { TransferStatus } from './compose-status.js'

/** The last 24 hours at equal steps, oldest first; fewer steps where the events do not reach back so far. */
export interface DayHistory {
  /** The time that the steps cover, ms. */
  readonly spanMs: number
  /** Mean bytes per second that nodes received in each step. */
  readonly receivedBytesPerSecond: readonly number[]
  /** The part of it that came from other nodes. */
  readonly peerBytesPerSecond: readonly number[]
  /** Bytes on disk of ready copies at the end of each step. */
  readonly spaceBytes: readonly number[]
}

/** The kinds of events that `traceDay` needs. */
export const DAY_EVENTS: readonly RecordEventKind[] = ['staging-started', 'staged', 'undone', 'evicted']

/** Maximum number of events behind a `DayHistory`, the newest ones: a busier day is traced in part. */
export const MAX_DAY_EVENTS = 20_000
/** 24 hours, in ms. */
export const DAY_MS = 86_400_000
export const DAY_STEPS = 288
const STEP_MS = DAY_MS / DAY_STEPS

/** The part of a copy that a day reads. */
export type DayCopy = Pick<CopyUse, 'copyId' | 'state' | 'chargedBytes' | 'readyAtMs' | 'createdAtMs'>

/**
 * The same space in fewer copies: those that became ready in the day before `nowMs`, and one that stands for all older
 * ones.
 */
export function shortenCopies(copies: readonly DayCopy[], nowMs: number): readonly DayCopy[] {
  const ready = copies.filter(({ state }) => state === 'ready')
  const isRecent = ({ readyAtMs, createdAtMs }: DayCopy) => (readyAtMs ?? createdAtMs) > nowMs - DAY_MS
  const oldBytes = ready.reduce((sum, copy) => sum + (isRecent(copy) ? 0 : copy.chargedBytes), 0)
  const old: DayCopy = { copyId: '', state: 'ready', chargedBytes: oldBytes, readyAtMs: 0, createdAtMs: 0 }
  const recent = ready.filter(isRecent).map(({ copyId, state, chargedBytes, readyAtMs, createdAtMs }) => {
    return { copyId, state, chargedBytes, readyAtMs, createdAtMs }
  })
  return oldBytes > 0 ? [old, ...recent] : recent
}

/**
 * Reconstructs the day before `nowMs` from the record's events of the kinds `DAY_EVENTS` in it, in any order. A download
 * counts evenly from its start to its end, because the record has only its total. With `MAX_DAY_EVENTS` events the
 * history begins at the oldest of them. Copies that other ways removed
 * (`forgotten`) left no size behind, and are missing from the space.
 */
export function traceDay(
  events: readonly RecordEvent[],
  present: { readonly copies: readonly DayCopy[]; readonly transfers: readonly TransferStatus[] },
  nowMs: number,
): DayHistory {
  const fromMs = nowMs - DAY_MS
  const received = new Array<number>(DAY_STEPS).fill(0)
  const fromPeers = new Array<number>(DAY_STEPS).fill(0)
  const changes = new Array<number>(DAY_STEPS + 1).fill(0)
  const stepOf = (atMs: number) => findStep(atMs, nowMs)
  const receive = (peerShare: number, bytes: number, sinceMs: number, untilMs: number) => {
    const [first, last] = [stepOf(sinceMs), stepOf(untilMs)]
    const lastingMs = Math.max(1, untilMs - sinceMs)
    for (let step = first; step <= last; step += 1) {
      const beginMs = Math.max(sinceMs, fromMs + step * STEP_MS)
      const endMs = Math.min(untilMs, fromMs + (step + 1) * STEP_MS)
      const share = first === last ? 1 : Math.max(0, endMs - beginMs) / lastingMs
      const rate = (bytes * share * 1000) / STEP_MS
      received[step]! += rate
      fromPeers[step]! += rate * peerShare
    }
  }
  const keep = (bytes: number, sinceMs: number, untilMs = Number.POSITIVE_INFINITY) => {
    changes[sinceMs <= fromMs ? 0 : stepOf(sinceMs)]! += bytes
    if (untilMs <= nowMs) changes[stepOf(untilMs)]! -= bytes
  }

  const startedAtMs = new Map<string, number>()
  const stagedAtMs = new Map<string, number>()
  const returnedAtMs = new Map<string, number>()
  for (const { kind, copyId, atMs, detail } of events) {
    if (kind === 'staging-started' && copyId !== null) startedAtMs.set(copyId, atMs)
    if (kind === 'staged' && copyId !== null) stagedAtMs.set(copyId, atMs)
    if (kind === 'undone' && copyId !== null && 'version' in detail) returnedAtMs.set(copyId, atMs)
  }
  for (const { copyId, createdAtMs } of present.copies)
    if (stagedAtMs.has(copyId) && !startedAtMs.has(copyId)) startedAtMs.set(copyId, createdAtMs)
  for (const { kind, copyId, atMs, detail } of events) {
    if (copyId === null) continue
    if (kind === 'staged') {
      const sinceMs = startedAtMs.get(copyId) ?? atMs
      receive(peerShareOf(detail), Number(detail.fetchedBytes ?? 0), sinceMs, atMs)
    }
    if (kind === 'evicted')
      keep(
        Number(detail.chargedBytes ?? 0),
        stagedAtMs.get(copyId) ?? returnedAtMs.get(copyId) ?? fromMs,
        atMs,
      )
  }
  for (const { writtenBytes, startedAtMs: sinceMs, servedBy } of present.transfers)
    receive(servedBy.length > 0 ? 1 : 0, writtenBytes, sinceMs, nowMs)
  for (const { state, chargedBytes, readyAtMs, createdAtMs } of present.copies)
    if (state === 'ready') keep(chargedBytes, readyAtMs ?? createdAtMs)

  const first = findFirstStep(events, nowMs)
  let spaceBytes = 0
  return {
    spanMs: (DAY_STEPS - first) * STEP_MS,
    receivedBytesPerSecond: received.slice(first),
    peerBytesPerSecond: fromPeers.slice(first),
    spaceBytes: changes
      .slice(0, DAY_STEPS)
      .map((change) => (spaceBytes += change))
      .slice(first),
  }
}

/** The first step of which all events were read: with `MAX_DAY_EVENTS` of them, the one of the oldest. */
export function findFirstStep(events: readonly RecordEvent[], nowMs: number): number {
  if (events.length < MAX_DAY_EVENTS) return 0
  const oldestMs = events.reduce((least, { atMs }) => Math.min(least, atMs), nowMs)
  return findStep(oldestMs, nowMs)
}

function findStep(atMs: number, nowMs: number): number {
  return Math.min(DAY_STEPS - 1, Math.max(0, Math.floor((atMs - (nowMs - DAY_MS)) / STEP_MS)))
}

/** The share of a staging's bytes that other nodes sent, 0 to 1. */
function peerShareOf(detail: RecordEvent['detail']): number {
  const { storeBytes, peerBytes } = countOrigins(detail)
  return peerBytes / Math.max(1, storeBytes + peerBytes)
}
