import { accessSync, constants, type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type BytePath, fromText, isAscii, toBytes, toText } from './byte-path.js'
import { PackedFiles } from './packed-files.js'
import type { LeftOut } from './plan/sample-files.js'

/** `follow`: links to anything the caller may read · `inside`: only links to content of the folder itself. */
export type LinkRule = 'follow' | 'inside'

/** The content of a folder. */
export interface FolderListing {
  readonly files: PackedFiles
  /** Broken links, and everything that is not a file. */
  readonly leftOut: readonly LeftOut[]
}

/** Sizes and modification times (ms) of files, in the order of their paths. */
export interface FileFacts {
  readonly sizes: Float64Array
  readonly mtimesMs: Float64Array
}

/** Finds out the facts of many files, below `root`; `paths` are separated by NUL. */
export type MeasureFiles = (root: BytePath, paths: string) => Promise<FileFacts>

/** Number of files to measure in one call. */
const FILES_AT_ONCE = 4096
/** Number of files that are measured before a thread has started. */
const FEW_FILES = 1024
/** Number of files to stat at once without threads. */
const STATS_AT_ONCE = 256

/** Some of the files below a folder. */
interface MeasuredPart {
  /** Paths, separated by NUL. */
  readonly text: BytePath
  readonly count: number
  readonly facts: Promise<FileFacts>
}

/**
 * Lists all files below `root`, an absolute path without links; follows links according to `links`. With `measure`,
 * threads look at the files, unless they are few; else this one asks for many at once, as their file system may be far
 * away.
 */
export async function listFolder(
  root: string,
  links: LinkRule,
  measure?: MeasureFiles,
): Promise<FolderListing> {
  const parts: MeasuredPart[] = []
  // Threads look at the first files while this one reads the names of the others.
  const walk = new FolderWalk(root, links, (text, count) => {
    const isThreaded = measure && (parts.length > 0 || count > FEW_FILES)
    const facts = isThreaded ? measure(fromText(root), text) : statFiles(walk.root, text.split('\0'))
    facts.catch(() => {}) // awaited below, unless the walk fails first
    parts.push({ text, count, facts })
  })
  walk.all()
  const count = parts.reduce((sum, part) => sum + part.count, 0)
  const { sizes, mtimesMs } = emptyFacts(count)
  let first = 0
  for (const part of parts) {
    const facts = await part.facts
    sizes.set(facts.sizes, first)
    mtimesMs.set(facts.mtimesMs, first)
    first += part.count
  }
  const files = new PackedFiles({ texts: parts.map(({ text }) => text), sizes, mtimesMs })
  return { files, leftOut: walk.leftOut }
}

async function statFiles(root: BytePath, paths: readonly BytePath[]): Promise<FileFacts> {
  const facts = emptyFacts(paths.length)
  for (let at = 0; at < paths.length; at += STATS_AT_ONCE) {
    const some = paths.slice(at, at + STATS_AT_ONCE)
    const stats = await Promise.all(some.map((path) => stat(toBytes(`${root}/${path}`))))
    for (const [i, found] of stats.entries()) setFacts(facts, at + i, found)
  }
  return facts
}

/** The same in a thread of its own, one file after the other: a call without waiting takes a third of the time. */
export function measureFiles(root: BytePath, paths: string): FileFacts {
  const names = paths.split('\0')
  const facts = emptyFacts(names.length)
  const isText = isAscii(root) && isAscii(paths) // such a path need not be turned into bytes first
  for (let i = 0; i < names.length; i++) {
    const path = `${root}/${names[i]}`
    setFacts(facts, i, statSync(isText ? path : toBytes(path)))
  }
  return facts
}

const emptyFacts = (count: number): FileFacts => ({
  sizes: new Float64Array(count),
  mtimesMs: new Float64Array(count),
})

function setFacts({ sizes, mtimesMs }: FileFacts, place: number, { size, mtimeMs }: Stats): void {
  sizes[place] = size
  mtimesMs[place] = mtimeMs
}

/** A file, or a folder: the real paths of the folders above it and, last, its own. */
type Target = 'file' | readonly BytePath[]

/** Visits files in byte order of their paths. */
class FolderWalk {
  readonly root: BytePath
  readonly leftOut: LeftOut[] = []
  readonly #links: LinkRule
  readonly #onPaths: (text: BytePath, count: number) => void
  /** Paths that `onPaths` has not had yet: texts separated by NUL, and their number. */
  #texts: BytePath[] = []
  #count = 0

  /** `onPaths` gets some thousand paths at a time, separated by NUL. */
  constructor(root: string, links: LinkRule, onPaths: (text: BytePath, count: number) => void) {
    this.root = fromText(root)
    this.#links = links
    this.#onPaths = onPaths
  }

  all(): void {
    this.#enter('', [this.root])
    if (this.#count > 0) this.#pass()
  }

  /** Enters `folder`, relative to the root. `chain`: real paths of the folders above it and, last, its own. */
  #enter(folder: BytePath, chain: readonly BytePath[]): void {
    const entries = readdirSync(toBytes(`${this.root}/${folder}`), {
      withFileTypes: true,
      encoding: 'latin1',
    })
    // A folder comes where its paths do, which go on with a slash.
    const names: BytePath[] = []
    const folders = new Map<BytePath, readonly BytePath[]>()
    const prefix = folder === '' ? '' : `${folder}/`
    for (const entry of entries) {
      const { name } = entry // a byte path, as it is read as latin1
      const target = entry.isFile() ? 'file' : this.#look(entry, prefix + name, chain)
      if (target === undefined) continue
      if (target !== 'file') folders.set(`${name}/`, target)
      names.push(target === 'file' ? name : `${name}/`)
    }
    names.sort()
    let first = 0
    for (let at = 0; folders.size > 0 && at < names.length; at++) {
      const name = names[at]!
      const inner = folders.get(name)
      if (!inner) continue
      this.#visit(prefix, names.slice(first, at))
      this.#enter(prefix + name.slice(0, -1), inner)
      first = at + 1
    }
    this.#visit(prefix, first === 0 ? names : names.slice(first))
  }

  #visit(prefix: BytePath, names: readonly BytePath[]): void {
    for (let at = 0; at < names.length; at += FILES_AT_ONCE) {
      const some = names.length <= FILES_AT_ONCE ? names : names.slice(at, at + FILES_AT_ONCE)
      this.#texts.push(prefix + some.join(`\0${prefix}`))
      this.#count += some.length
      if (this.#count >= FILES_AT_ONCE) this.#pass()
    }
  }

  #pass(): void {
    this.#onPaths(this.#texts.join('\0'), this.#count)
    this.#texts = []
    this.#count = 0
  }

  #look(entry: Dirent, path: BytePath, chain: readonly BytePath[]): Target | undefined {
    if (entry.isDirectory()) return this.#once(path, `${chain.at(-1)}/${entry.name}`, chain)
    if (entry.isSymbolicLink()) return this.#follow(path, chain)
    return this.#leave(path, 'neither a file nor a folder')
  }

  #once(path: BytePath, real: BytePath, chain: readonly BytePath[]): Target | undefined {
    if (chain.includes(real)) return this.#leave(path, 'leads back into its own folders')
    return [...chain, real]
  }

  #follow(path: BytePath, chain: readonly BytePath[]): Target | undefined {
    const link = toBytes(`${this.root}/${path}`)
    try {
      const real = realpathSync(link, { encoding: 'latin1' })
      if (this.#links === 'inside' && !`${real}/`.startsWith(`${this.root}/`))
        return this.#leave(path, 'a link out of the folder')
      const target = statSync(link)
      accessSync(link, constants.R_OK)
      if (target.isDirectory()) return this.#once(path, real, chain)
      if (target.isFile()) return 'file'
      return this.#leave(path, 'a link to neither a file nor a folder')
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      const reason = LINK_FAILURES[code]
      if (reason === undefined) throw error
      return this.#leave(path, reason)
    }
  }

  #leave(path: BytePath, reason: string): undefined {
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
