import { closeSync, constants, openSync, statfsSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { HeldFolder } from '../../platform/held-folder.js'

/**
 * Space that SQLite needs for a few transactions: its journal, the journal's index in shared memory, and their inodes.
 */
const RESERVE_BYTES = 1024 * 1024
const RESERVE_FILES = 8
/** Below this, dsc gives up the reserve to record an eviction. */
const NEARLY_FULL = { bytes: 2 * RESERVE_BYTES, inodes: 2 * RESERVE_FILES }
/** From here on there is space for the reserve (again). */
const ROOMY = { bytes: 32 * RESERVE_BYTES, inodes: 64 * RESERVE_FILES }
const givenUp = new Set<string>()

/**
 * Space kept beside a record for a full disk: without it, dsc could not record evictions, and SQLite ends the process
 * with SIGBUS when its shared memory gets no page. On a nearly full disk, given up before the record is opened.
 */
export function giveUpReserve(recordPath: string): void {
  if (hasAtLeast(recordPath, NEARLY_FULL)) return
  givenUp.add(recordPath)
  withFolder(recordPath, (parent, name) => {
    using reserve = parent.findFolder(name)
    for (const file of reserve?.list() ?? []) reserve?.unlink(file.name)
  })
}

/** Whether this process gave up the reserve beside the record. */
export function hasGivenUpReserve(recordPath: string): boolean {
  return givenUp.has(recordPath)
}

/**
 * Creates a missing reserve if the disk has plenty, and restores the one this process gave up, as far as space remains.
 * A user without write permission leaves it to others.
 */
export function keepReserve(recordPath: string): void {
  withFolder(recordPath, (parent, name) => {
    const found = parent.findFolder(name)
    const isThere = found !== undefined && found.list().length >= RESERVE_FILES
    found?.close()
    if (isThere || !(givenUp.delete(recordPath) || hasAtLeast(recordPath, ROOMY))) return
    using reserve = parent.makeFolder(name)
    for (let index = 0; index < RESERVE_FILES; index++) fill(reserve.pathOf(`${index}`))
  })
}

/** Not sparse, and different in every page, so that compressing file systems keep its full size. */
function fill(path: string): void {
  const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_TRUNC } = constants
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644)
  try {
    const numbers = new Float64Array(RESERVE_BYTES / RESERVE_FILES / Float64Array.BYTES_PER_ELEMENT)
    writeSync(descriptor, numbers.map(Math.random))
  } finally {
    closeSync(descriptor)
  }
}

function hasAtLeast(
  recordPath: string,
  wanted: { readonly bytes: number; readonly inodes: number },
): boolean {
  const { bsize, bavail, files, ffree } = statfsSync(dirname(recordPath))
  return bavail * bsize >= wanted.bytes && (files === 0 || ffree >= wanted.inodes)
}

/** The reserve never fails an operation that would work without it. */
function withFolder(recordPath: string, act: (parent: HeldFolder, name: string) => void): void {
  try {
    using parent = HeldFolder.find(dirname(recordPath))
    if (parent) act(parent, `${basename(recordPath)}.reserve`)
  } catch {
    // It is another user's, or the disk is full again.
  }
}
