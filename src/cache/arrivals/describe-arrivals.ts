import { setTimeout as sleep } from 'node:timers/promises'
import type { Copy } from '../../model/copy.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { stagingDirectoryOf } from '../cache-layout.js'
import { ArrivalClient } from './arrival-client.js'

/** A stager that does not answer for so long is not waited for, ms. */
const MAX_SILENCE_MS = 5000

/** Who reads the copies that are being staged here, by copy; those whose stager does not answer are left out. */
export async function describeArrivals(
  root: string,
  copies: readonly Pick<Copy, 'copyId'>[],
): Promise<ReadonlyMap<string, readonly ReaderStatus[]>> {
  const stop = new AbortController()
  // The connections keep no process alive; this does.
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
  void opened.then((client) => client?.close()) // of one that was silent, too
  return readers?.map((reader) => ({
    ...reader,
    name: reader.name.replaceAll(/[^ -~]/g, '?'),
    waitsFor: reader.waitsFor.map((key) => key.replaceAll(/\p{Cc}/gu, '?')),
  }))
}
