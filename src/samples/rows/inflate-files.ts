import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { claimFolder } from '../../platform/claim-file.js'
import { makeFolder } from '../../platform/shared-folder.js'
import { type BytePath, fromText, toBytes, toText } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import { randomSuffix } from './rows-paths.js'
import type { UnpackRequest } from './unpack-rows.js'

/** Files to inflate, and where. */
interface InflateRequest
  extends Pick<UnpackRequest, 'root' | 'folder' | 'makeRoom' | 'settle' | 'onProgress'> {
  /** Files that are not compressed are linked. */
  readonly files: readonly ListedFile[]
  /** Paths of side files, which are linked if they exist. */
  readonly beside: readonly BytePath[]
  /** Size of a file once inflated, in bytes; undefined if unknown. */
  readonly sizeOf: (file: ListedFile) => number | undefined
}

const AT_ONCE = 4
/** Expected growth of a file whose inflated size is unknown. */
const USUAL_RATIO = 4
/** Offsets in shards have 32 bits. */
const MOST_BYTES = 2 ** 32

/** Decoders for files compressed as a whole, by the end of the name. */
const DECODERS: Readonly<Record<string, (() => Transform) | undefined>> = {
  zstd: zlib.createZstdDecompress, // since Node 22.15
  gz: zlib.createGunzip,
  br: zlib.createBrotliDecompress,
}

/** Returns a file's name without the ending of its compression; undefined if it is not compressed. */
export function inflatedName(path: BytePath): BytePath | undefined {
  return /^(.*)\.(zstd|gz|br)$/.exec(path)?.[1]
}

/**
 * Inflates files of a folder, once for all concurrent callers, and resolves with the resulting files, in the same
 * order. A finished file survives if the process is killed, and is made again when its origin changes. Rejects with
 * COPY_DAMAGED for a damaged file, and like `makeRoom`.
 */
export async function inflateFiles(request: InflateRequest): Promise<readonly ListedFile[]> {
  const { files, folder } = request
  const isDone = () => files.every((file) => findFinished(request, file))
  if (!isDone()) {
    makeFolder(folder)
    const claim = await claimFolder(folder, { isDone, onWait: () => request.onProgress?.(0, files.length) })
    using _ = atEndNow(() => claim?.release())
    if (claim) await inflateMissing(request)
  }
  return files.map((file) => findFinished(request, file) ?? failChanged(file))
}

const targetOf = ({ path }: ListedFile) => inflatedName(path) ?? path

/** Returns the inflated file if it exists and matches the folder's current content. */
function findFinished({ folder }: InflateRequest, file: ListedFile): ListedFile | undefined {
  const path = targetOf(file)
  const stats = statSync(toBytes(`${fromText(folder)}/${path}`), { throwIfNoEntry: false })
  // Its time equals that of its origin, as far as file systems keep fractions.
  if (!stats || Math.abs(stats.mtimeMs - file.mtimeMs) >= 2) return undefined
  return { path, size: stats.size, mtimeMs: file.mtimeMs }
}

function failChanged({ path }: ListedFile): never {
  throw new DscError('COPY_DAMAGED', `${toText(path)} changed while it was unpacked`)
}

async function inflateMissing(request: InflateRequest): Promise<void> {
  const { root, files, beside, folder, sizeOf, onProgress } = request
  for (const path of beside) link(root, path, folder)
  const missing = files.filter((file) => !findFinished(request, file))
  const compressed = missing.filter(({ path }) => inflatedName(path) !== undefined)
  await request.makeRoom(compressed.reduce((sum, file) => sum + (sizeOf(file) ?? USUAL_RATIO * file.size), 0))
  let done = files.length - missing.length
  const waiting = missing.values()
  const work = async () => {
    for (const file of waiting) {
      if (inflatedName(file.path) === undefined) link(root, file.path, folder)
      else await inflate(request, file)
      onProgress?.(++done, files.length)
    }
  }
  const failed = (await Promise.allSettled(Array.from({ length: AT_ONCE }, work))).find(
    (each) => each.status === 'rejected',
  )
  if (failed) throw failed.reason
  await request.settle()
}

function link(root: BytePath, path: BytePath, folder: string): void {
  const [from, to] = [toBytes(`${root}/${path}`), `${fromText(folder)}/${path}`]
  if (!existsSync(from)) return
  makeFolder(toBytes(dirname(to)))
  rmSync(toBytes(to), { force: true })
  symlinkSync(from, toBytes(to))
}

async function inflate({ root, folder }: InflateRequest, file: ListedFile): Promise<void> {
  const from = toBytes(`${root}/${file.path}`)
  const target = `${fromText(folder)}/${targetOf(file)}`
  const part = join(folder, randomSuffix())
  const decoder = DECODERS[toText(file.path).split('.').at(-1)!]
  if (!decoder)
    throw new DscError('USAGE', `this Node does not read ${toText(file.path)}`, { hint: 'Node 24' })
  makeFolder(toBytes(dirname(target)))
  try {
    await pipeline(
      createReadStream(from),
      decoder(),
      limited(),
      createWriteStream(part, { flags: 'wx', mode: 0o444 }),
    )
    utimesSync(part, file.mtimeMs / 1000, file.mtimeMs / 1000)
    const descriptor = openSync(part, 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(part, toBytes(target))
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (!/^(Z_|ZSTD_|ERR_|BROTLI)/.test(code)) throw error
    const hint = 'fetch the file again (dsc verify --repair)'
    throw new DscError('COPY_DAMAGED', `${toText(file.path)} cannot be unpacked: ${message}`, { hint })
  } finally {
    rmSync(part, { force: true })
  }
}

/** Fails for anything larger than a shard can be. */
function limited(): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length
      if (bytes < MOST_BYTES) done(null, chunk)
      else done(Object.assign(new Error('it becomes larger than 4 GiB'), { code: 'ERR_TOO_LARGE' }))
    },
  })
}
