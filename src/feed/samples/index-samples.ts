import { createHash } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import { buildSampleTable, openSampleTable, type SampleRow, type SampleTable } from './sample-table.js'
import { listTarMembers, type TarMember } from './tar-members.js'

/** Where samples are on a local disk: a directory tree of files, or of tar shards. */
export interface SampleFolder {
  /** Absolute path without symbolic links. */
  readonly root: string
  readonly table: SampleTable
  /** Whether the table was read from the cache instead of made. */
  readonly isCached: boolean
}

export interface IndexOptions {
  /** Folder that keeps tables between runs. */
  readonly cacheFolder: string
  /** Only files with one of these extensions (without the dot) are samples. Default: all files. */
  readonly extensions?: readonly string[] | undefined
  /** Makes the table again even when a cached one fits. */
  readonly isRefreshed?: boolean
  readonly onProgress?: (filesDone: number, filesTotal: number) => void
}

interface ListedFile {
  readonly path: string
  readonly size: number
}

/**
 * Lists the samples under `folder`, once: the table is kept, and used again while path, size and modification time
 * of every file are as they were. A folder of *.tar holds WebDataset shards, any other folder one sample per file.
 */
export async function indexSamples(folder: string, options: IndexOptions): Promise<SampleFolder> {
  let root: string
  try {
    root = realpathSync(folder)
    if (!statSync(root).isDirectory()) throw new Error('not a directory')
  } catch (cause) {
    throw new DscError('COPY_NOT_FOUND', `${folder} is not a directory that can be read`, {
      hint: 'dsc prepare <dataset> prints the path of a copy',
      cause,
    })
  }
  const stamp = createHash('sha256').update(root)
  const files = await listFiles(root, options.extensions, stamp)
  if (files.length === 0 && options.extensions)
    throw new DscError(
      'SOURCE_EMPTY',
      `${folder} holds no files that end in .${options.extensions.join(' or .')}`,
      {
        hint: 'other extensions in --only, or none for all files',
      },
    )
  if (files.length === 0)
    throw new DscError('SOURCE_EMPTY', `${folder} holds no files, so there is nothing to feed`)
  const cachePath = join(options.cacheFolder, `${stamp.digest('hex')}.samples`)
  if (!options.isRefreshed) {
    const cached = await readFile(cachePath).catch(() => undefined)
    if (cached) return { root, table: openSampleTable(cached), isCached: true }
  }
  const isSharded = files.every((file) => file.path.endsWith('.tar'))
  const table = isSharded ? indexShards(root, files, options) : indexFiles(root, files, options)
  mkdirSync(options.cacheFolder, { recursive: true })
  const partPath = `${cachePath}.${process.pid}`
  writeFileSync(partPath, table.bytes)
  renameSync(partPath, cachePath)
  return { root, table, isCached: false }
}

/** All regular files in byte order of their paths; symbolic links are not followed. */
async function listFiles(
  root: string,
  extensions: readonly string[] | undefined,
  stamp: { update(text: string): unknown },
): Promise<ListedFile[]> {
  const isSample = (path: string) => !extensions || extensions.some((each) => path.endsWith(`.${each}`))
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter(isSample)
    .sort((a, b) => (a < b ? -1 : 1))
  const files: ListedFile[] = []
  for (let at = 0; at < paths.length; at += 256) {
    const some = paths.slice(at, at + 256)
    const stats = await Promise.all(some.map((path) => stat(join(root, path))))
    for (const [i, { size, mtimeMs }] of stats.entries()) {
      files.push({ path: some[i]!, size })
      stamp.update(`\n${some[i]!}\0${size}\0${mtimeMs}`)
    }
  }
  return files
}

function indexFiles(root: string, files: readonly ListedFile[], options: IndexOptions): SampleTable {
  const scratch = Buffer.allocUnsafe(1 << 20)
  const rows = files.map(({ path, size }, file): SampleRow => {
    assertLength(path, size)
    const fd = openSync(join(root, path), 'r')
    try {
      if (file % 512 === 0) options.onProgress?.(file, files.length)
      return { name: path, file, offset: 0, length: size, crc32: checksum(fd, 0, size, scratch) }
    } finally {
      closeSync(fd)
    }
  })
  return buildSampleTable(
    'file',
    files.map((file) => file.path),
    rows,
  )
}

/** Members of one key (name up to the first dot of its last part) are one sample, as in WebDataset. */
function indexShards(root: string, files: readonly ListedFile[], options: IndexOptions): SampleTable {
  const scratch = Buffer.allocUnsafe(1 << 20)
  const groups: { file: number; key: string; members: TarMember[] }[] = []
  for (const [file, { path, size }] of files.entries()) {
    options.onProgress?.(file, files.length)
    const fd = openSync(join(root, path), 'r')
    try {
      for (const member of listTarMembers(fd, size, path)) {
        const key = member.name.replace(/^(.*\/)?([^/.]*).*$/, '$1$2')
        const last = groups.at(-1)
        if (last?.file === file && last.key === key) last.members.push(member)
        else groups.push({ file, key, members: [member] })
      }
    } finally {
      closeSync(fd)
    }
  }
  const isSingle = groups.every((group) => group.members.length === 1)
  let open = { file: -1, fd: -1 }
  const rows = groups.map(({ file, key, members }): SampleRow => {
    const first = members[0]!
    const last = members.at(-1)!
    const offset = isSingle ? first.dataAt : first.headerAt
    const length = last.dataAt + last.length - offset
    const name = isSingle ? first.name : key
    assertLength(`${files[file]!.path}:${name}`, length)
    if (open.file !== file) {
      if (open.fd >= 0) closeSync(open.fd)
      open = { file, fd: openSync(join(root, files[file]!.path), 'r') }
    }
    return { name, file, offset, length, crc32: checksum(open.fd, offset, length, scratch) }
  })
  if (open.fd >= 0) closeSync(open.fd)
  return buildSampleTable(
    isSingle ? 'member' : 'tar',
    files.map((file) => file.path),
    rows,
  )
}

function assertLength(name: string, length: number): void {
  if (length >= 2 ** 32)
    throw new DscError('USAGE', `sample ${name} has ${length} bytes; the feed takes samples below 4 GiB`)
}

function checksum(fd: number, offset: number, length: number, scratch: Buffer): number {
  let value = 0
  for (let done = 0; done < length; ) {
    const read = readSync(fd, scratch, 0, Math.min(scratch.length, length - done), offset + done)
    if (read === 0)
      throw new DscError('COPY_DAMAGED', `a file ended ${length - done} bytes early while it was indexed`)
    value = crc32(scratch.subarray(0, read), value)
    done += read
  }
  return value
}
