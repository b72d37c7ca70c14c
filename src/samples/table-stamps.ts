import { createHash, type Hash } from 'node:crypto'
import type { ListedFile } from './list-folder.js'
import type { SampleFiles } from './plan/sample-files.js'

/** Version of the method that finds samples: tables made by another one are not used. */
const METHOD = 'dsc samples 6'

/** The files that a table is made of, and `how`: with `skip`, it leaves unreadable records out. */
export type KeptListing = Pick<SampleFiles<ListedFile>, 'format' | 'files'> & { readonly how: string }

/** Digest of everything the table depends on. Numbers are digested as they are: as texts, they would take far longer. */
export function stampOf(root: string, { format, files, how }: KeptListing): string {
  const facts = new Float64Array(2 * files.length)
  for (let i = 0; i < files.length; i++) {
    facts[2 * i] = files[i]!.size
    facts[2 * i + 1] = files[i]!.mtimeMs
  }
  const head = `numbers\n${format} ${how}\n${root}`
  return digestLines(head, files, ({ path }) => `\n${path}\0`)
    .update(facts)
    .digest('hex')
}

/** The same on every node: modification times differ between nodes, so they are left out. */
export function sharedStampOf({ format, files, how }: KeptListing): string {
  return digestLines(`${format} ${how}`, files, ({ path, size }) => `\n${path}\0${size}`).digest('hex')
}

/** Digests a head and a line for each file; many lines at a time, as a call costs more than a line. */
function digestLines(head: string, files: readonly ListedFile[], lineOf: (file: ListedFile) => string): Hash {
  const digest = createHash('sha256').update(`${METHOD}\n${head}`)
  for (let at = 0; at < files.length; at += 1024) {
    const lines = files.slice(at, at + 1024).map(lineOf)
    digest.update(lines.join(''), 'latin1')
  }
  return digest
}
