import { access, constants, readdir, realpath, stat } from 'node:fs/promises'
import { type BytePath, fromBytes, fromText, toBytes, toText } from './byte-path.js'
import type { LeftOut } from './plan/sample-files.js'

/** `follow`: links to anything the caller may read · `inside`: only links to content of the folder itself. */
export type LinkRule = 'follow' | 'inside'

/** A file below a folder. */
export interface ListedFile {
  /** Relative to the folder. */
  readonly path: BytePath
  readonly size: number
  readonly mtimeMs: number
}

interface FolderListing {
  /** In byte order of their paths. */
  readonly files: readonly ListedFile[]
  /** Broken links, and everything that is not a file. */
  readonly leftOut: readonly LeftOut[]
}

/** Number of files to stat at once. */
const STATS_AT_ONCE = 256

/** Lists all files below `root`, an absolute path without links; follows links according to `links`. */
export async function listFolder(root: string, links: LinkRule): Promise<FolderListing> {
  const walk = new FolderWalk(root, links)
  await walk.enter('', [fromText(root)])
  const paths = walk.paths.sort((a, b) => (a < b ? -1 : 1))
  const files: ListedFile[] = []
  for (let at = 0; at < paths.length; at += STATS_AT_ONCE) {
    const some = paths.slice(at, at + STATS_AT_ONCE)
    const stats = await Promise.all(some.map((path) => stat(toBytes(`${walk.root}/${path}`))))
    for (const [i, { size, mtimeMs }] of stats.entries()) files.push({ path: some[i]!, size, mtimeMs })
  }
  return { files, leftOut: walk.leftOut }
}

class FolderWalk {
  readonly root: BytePath
  readonly paths: BytePath[] = []
  readonly leftOut: LeftOut[] = []
  readonly #links: LinkRule

  constructor(root: string, links: LinkRule) {
    this.root = fromText(root)
    this.#links = links
  }

  /** Enters `folder`, relative to the root. `chain`: real paths of the folders above it and, last, its own. */
  async enter(folder: BytePath, chain: readonly BytePath[]): Promise<void> {
    const entries = await readdir(toBytes(`${this.root}/${folder}`), {
      withFileTypes: true,
      encoding: 'buffer',
    })
    for (const entry of entries) {
      const name = fromBytes(entry.name)
      const path = folder === '' ? name : `${folder}/${name}`
      if (entry.isFile()) this.paths.push(path)
      else if (entry.isDirectory()) await this.#enterOnce(path, `${chain.at(-1)}/${name}`, chain)
      else if (entry.isSymbolicLink()) await this.#follow(path, chain)
      else this.#leave(path, 'neither a file nor a folder')
    }
  }

  async #enterOnce(path: BytePath, real: BytePath, chain: readonly BytePath[]): Promise<void> {
    if (chain.includes(real)) this.#leave(path, 'leads back into its own folders')
    else await this.enter(path, [...chain, real])
  }

  async #follow(path: BytePath, chain: readonly BytePath[]): Promise<void> {
    const link = toBytes(`${this.root}/${path}`)
    try {
      const real = fromBytes(await realpath(link, { encoding: 'buffer' }))
      if (this.#links === 'inside' && !`${real}/`.startsWith(`${this.root}/`)) {
        this.#leave(path, 'a link out of the folder')
        return
      }
      const target = await stat(link)
      await access(link, constants.R_OK)
      if (target.isDirectory()) await this.#enterOnce(path, real, chain)
      else if (target.isFile()) this.paths.push(path)
      else this.#leave(path, 'a link to neither a file nor a folder')
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      const reason = LINK_FAILURES[code]
      if (reason === undefined) throw error
      this.#leave(path, reason)
    }
  }

  #leave(path: BytePath, reason: string): void {
    this.leftOut.push({ path: toText(path), reason })
  }
}

const LINK_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'a link to nothing',
  ENOTDIR: 'a link to nothing',
  ELOOP: 'a link to itself',
  EACCES: 'a link to what may not be read',
  EPERM: 'a link to what may not be read',
}
