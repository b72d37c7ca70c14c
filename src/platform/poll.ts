import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** How often to look at what tells nobody when it changes, in ms. */
export const LOOK_MS = {
  /** At bytes that another process of this node writes, while a reader waits for them. */
  progress: 50,
  /** At what another process of this node holds, and may give back soon. */
  release: 100,
  /** At a process or node that has yet to begin. */
  start: 250,
  /** At another node that works on an answer. */
  node: 500,
  /** At a database that is down, or for changes that it should have announced. */
  database: 2000,
} as const

/** Waits, until the signal aborts at most. Never rejects: the caller checks the signal. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal && { signal }).catch(() => {})
}

/** Resolves when `signal` aborts: for a command that runs until it is stopped. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
