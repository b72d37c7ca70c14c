import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { PAGE_BYTES } from '../../platform/page-bytes.js'
import type { ByteRange } from '../arrivals/block-set.js'

const READ_BYTES = 1024 * 1024
/** Shorter runs cost more as requests of their own than they save, bytes. */
const LEAST_RUN_BYTES = 512 * 1024
const NOTHING = Buffer.alloc(PAGE_BYTES)

/**
 * Finds what a killed attempt wrote of a range of a file that had its full size before anything was in it: pages that
 * are not all zeros. The last page of a run may be cut short, so it does not count. Only true within one boot: after a
 * power loss the disk may keep old bytes.
 *
 * A page in the middle of a run may be cut short, too, if another request wrote the page after it. Requests write in
 * order, so a page whose last byte is not zero is whole. An object that `isUnproven` has no checksum to reveal a hole:
 * only such pages of it count.
 */
export async function findWrittenRuns(
  path: string,
  range: ByteRange,
  { isUnproven, signal }: { readonly isUnproven: boolean; readonly signal: AbortSignal },
): Promise<readonly ByteRange[]> {
  const runs: ByteRange[] = []
  const end = range.offset + range.length
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  let begin = range.offset
  const close = (at: number) => {
    const length = at - PAGE_BYTES - begin
    const isBeginning = begin === range.offset // the rest is one request with or without it
    if (length >= (isBeginning ? PAGE_BYTES : LEAST_RUN_BYTES)) runs.push({ offset: begin, length })
  }
  await using file = await openLeft(path)
  for (let at = range.offset; at < end; ) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(READ_BYTES, end - at), at)
    if (bytesRead === 0) break
    for (let page = 0; page < bytesRead; page += PAGE_BYTES) {
      const bytes = buffer.subarray(page, Math.min(page + PAGE_BYTES, bytesRead))
      const mayBeCut = isUnproven && bytes.at(-1) === 0
      if (!mayBeCut && !bytes.equals(NOTHING.subarray(0, bytes.length))) continue
      close(at + page)
      begin = at + page + PAGE_BYTES
    }
    at += bytesRead
  }
  close(end)
  return runs
}

/**
 * Finds what a killed attempt wrote of a range whose bytes were all requested in order: everything before its last
 * page that is not all zeros, which may be cut short. Like `findWrittenRuns`, only true within one boot.
 */
export async function findWrittenBeginning(
  path: string,
  { offset, length }: ByteRange,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly ByteRange[]> {
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  await using file = await openLeft(path)
  for (let end = offset + length; end > offset; ) {
    signal.throwIfAborted()
    const at = offset + Math.floor((end - offset - 1) / READ_BYTES) * READ_BYTES
    const { bytesRead } = await file.read(buffer, 0, end - at, at)
    const page = findLastPage(buffer.subarray(0, bytesRead))
    if (page !== undefined) return at + page > offset ? [{ offset, length: at + page - offset }] : []
    end = at
  }
  return []
}

/** Offset of the last page that is not all zeros. */
function findLastPage(bytes: Uint8Array): number | undefined {
  for (let page = Math.ceil(bytes.length / PAGE_BYTES) - 1; page >= 0; page -= 1) {
    const at = page * PAGE_BYTES
    const content = bytes.subarray(at, at + PAGE_BYTES)
    if (Buffer.compare(content, NOTHING.subarray(0, content.length)) !== 0) return at
  }
  return undefined
}

function openLeft(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
}
