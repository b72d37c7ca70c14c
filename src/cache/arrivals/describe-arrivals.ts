import { setTimeout as sleep } from 'node:timers/promises'
import type { Copy } from '../../model/copy.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { stagingDirectoryOf } from '../cache-layout.js'
import { ArrivalClient } from './arrival-client.js'

/** How long to wait for a stager's answer, in ms. */
const MAX_SILENCE_MS = 5000

/** Readers of the copies being staged on this node, by copy; copies whose stager does not answer are left out. */
export async function describeArrivals(
  root: string,
  copies: readonly Pick<Copy, 'copyId'>[],
): Promise<ReadonlyMap<string, readonly ReaderStatus[]>> {
  const stop = new AbortController()
  // The connections do not keep the process alive; this timer does.
  const silent = sleep(MAX_SILENCE_MS, undefined, { signal: stop.signal }).catch(() => undefined)
  const described = await Promise.all(
    copies.map(async ({ copyId }) => {
      return [copyId, await describe(stagingDirectoryOf(root, copyId), silent)] as const
    }),
  )
  stop.abort()
  return new Map(described.flatMap(([copyId, readers]) => (readers ? [[copyId, readers]] : [])))
}

async function describe(
  copyDirectory: string,
  silent: Promise<undefined>,
): Promise<readonly ReaderStatus[] | undefined> {
  const opened = ArrivalClient.open(copyDirectory)
  const told = opened.then((client) => client?.describe())
  const readers = await Promise.race([told, silent])
  void opened.then((client) => client?.close()) // also if it was silent
  return readers?.map((reader) => ({
    ...reader,
    name: reader.name.replaceAll(/[^ -~]/g, '?'),
    waitsFor: reader.waitsFor.map((key) => key.replaceAll(/\p{Cc}/gu, '?')),
  }))
}
