import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, statfsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { filesDirectory } from '../cache/cache-layout.js'
import { measureCopy } from '../cache/download/measure-copy.js'
import { chargeCopy, chargeMeasured } from '../cache/eviction/charge-copy.js'
import type { Surroundings } from '../cache/surroundings.js'
import { DscError, isDscError } from '../failure/dsc-error.js'
import { formatByteSize } from '../model/byte-size.js'
import type { Copy } from '../model/copy.js'
import { HeldFolder } from '../platform/held-folder.js'
import { type BytePath, toBytes } from '../samples/byte-path.js'
import { type RowsKept, rowsFolderName } from '../samples/rows/rows-paths.js'
import type { RowsOptions, RowsPlace, RowsReading } from '../samples/rows/rows-place.js'

/** Folder in that of a copy, beside its files, or in a user's cache. */
const ROWS_FOLDER = 'rows'

/** Where to unpack rows: beside the files of a copy, whose charge grows accordingly, else in this user's cache. */
export function findRowsPlace(
  context: Surroundings,
  options: {
    readonly columns: readonly string[] | undefined
    readonly reading: RowsReading
    /** The copy that the files belong to; undefined: they are not a dataset's. */
    readonly copy: Copy | undefined
    /** Where tables of samples are kept; rows lie beside them. */
    readonly cacheFolder: string
  },
): RowsOptions {
  const { columns, reading, copy, cacheFolder } = options
  return {
    columns,
    reading,
    async openPlace(root, what, kept) {
      // Lengths are a list like those of all formats, and are kept with them: a full copy has no room for them.
      const isBeside = copy && kept === 'rows'
      const beside = isBeside && (await openBesideFiles(context, copy, { root, what }))
      const place = beside || openInCache(join(cacheFolder, '..', ROWS_FOLDER), { root, what })
      return telling(context, place, kept)
    },
  }
}

/** Reports that rows are unpacked or measured, which takes a while, and how long it took. */
function telling({ report }: Surroundings, place: RowsPlace, kept: RowsKept): RowsPlace {
  const done = kept === 'rows' ? 'unpacked' : 'measured'
  let beganMs = 0
  return {
    ...place,
    async makeRoom(bytes) {
      await place.makeRoom(bytes)
      report.note(`dsc: rows are ${done}, once: about ${formatByteSize(bytes)}`)
      beganMs = performance.now()
    },
    async settle() {
      await place.settle()
      const seconds = ((performance.now() - beganMs) / 1000).toFixed(1)
      report.note(`dsc: rows were ${done} in ${seconds} s, into ${place.readPath}`)
    },
  }
}

interface Wanted {
  readonly root: BytePath
  readonly what: readonly string[] | undefined
}

/** Undefined if this user cannot write to the copy's folder; the rows then go to the user's own cache. */
async function openBesideFiles(
  context: Surroundings,
  copy: Copy,
  wanted: Wanted,
): Promise<RowsPlace | undefined> {
  if ((await context.config()).door) return undefined // the folder is the service's, and so is the charge
  const cache = await context.openCache()
  // We do not write to an adopted folder.
  if (cache.record.isReadOnly || !copy.directory.startsWith(`${cache.root}/`)) return undefined
  const split = relative(filesDirectory(copy.directory), toBytes(wanted.root).toString())
  const name = rowsFolderName([split, wanted.what ?? null])
  const held = holdFolders(copy.directory, [ROWS_FOLDER, name])
  if (!held) return undefined
  return {
    writePath: held.path,
    readPath: join(copy.directory, ROWS_FOLDER, name),
    async makeRoom(bytes) {
      const { diskBytes, inodes } = await measureCopy(copy.directory)
      await chargeMeasured(cache, copy.copyId, { diskBytes, inodes })
      if (!(await chargeCopy(cache, copy, { bytes, inodes: 0 })))
        throw new DscError('COPY_NOT_FOUND', `${copy.directory} is no ready copy any more`)
    },
    async settle() {
      await chargeMeasured(cache, copy.copyId, await measureCopy(copy.directory))
    },
    close: () => held.close(),
  }
}

/** Opens nested folders, creating missing ones; undefined if another user's folders deny access. */
function holdFolders(directory: string, names: readonly string[]): HeldFolder | undefined {
  let folder = HeldFolder.find(directory)
  const owner = folder && lstatSync(`${folder.path}/.`).uid
  for (const name of names) {
    const parent: HeldFolder | undefined = folder
    try {
      folder = parent?.makeFolder(name)
    } catch (error) {
      if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
      return undefined
    } finally {
      parent?.close()
    }
    // Do not trust rows that neither the owner of the copy nor this user wrote.
    if (folder && ![owner, process.getuid?.()].includes(lstatSync(`${folder.path}/.`).uid)) {
      folder.close()
      return undefined
    }
  }
  return folder
}

function openInCache(cacheFolder: string, { root, what }: Wanted): RowsPlace {
  const ofRoot = createHash('sha256').update(root, 'latin1').digest('hex').slice(0, 16)
  const path = join(cacheFolder, ofRoot, rowsFolderName([what ?? null]))
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return {
    writePath: path,
    readPath: path,
    async makeRoom(bytes) {
      const { bavail, bsize } = statfsSync(path)
      if (bytes <= bavail * bsize) return
      throw new DscError(
        'DISK_FULL',
        `${path}: unpacked rows take about ${formatByteSize(bytes)}, and ${formatByteSize(bavail * bsize)} are free`,
        { hint: 'fewer --columns, or XDG_CACHE_HOME on another disk' },
      )
    },
    settle: async () => {},
    close() {},
  }
}
