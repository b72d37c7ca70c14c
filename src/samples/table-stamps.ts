import { createHash, type Hash } from 'node:crypto'
import type { FormatName } from '../model/sample-formats.js'
import type { PackedFiles } from './packed-files.js'

/** Version of the method that finds samples: tables made by another one are not used. */
const METHOD = 'dsc samples 7'

/** The files that a table is made of, and `how`: with `skip`, it leaves unreadable records out. */
export interface KeptListing {
  readonly format: FormatName
  readonly files: PackedFiles
  readonly how: string
}

/** Digest of everything the table depends on. Numbers are digested as they are: as texts, they would take far longer. */
export function stampOf(root: string, { format, files, how }: KeptListing): string {
  return digestFiles(`numbers\n${format} ${how}\n${root}`, files).update(files.mtimesMs).digest('hex')
}

/** The same on every node: modification times differ between nodes, so they are left out. */
export function sharedStampOf({ format, files, how }: KeptListing): string {
  return digestFiles(`${format} ${how}`, files).digest('hex')
}

/** Digests a head, paths and sizes. */
function digestFiles(head: string, { texts, sizes }: PackedFiles): Hash {
  const digest = createHash('sha256').update(`${METHOD}\n${head}\n`)
  for (const text of texts) digest.update(text, 'latin1').update('\0')
  return digest.update(sizes)
}
