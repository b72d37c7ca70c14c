import { relative } from 'node:path'
import { filesDirectory } from '../cache/cache-layout.js'
import { readPresentFiles } from '../manifest/read-present-files.js'
import type { Copy } from '../model/copy.js'
import { fromText } from '../samples/byte-path.js'
import type { FolderListing } from '../samples/list-folder.js'
import { PackedFiles } from '../samples/packed-files.js'

/**
 * The files of a ready copy by its manifest: nobody may write to them, and looking at each of a hundred thousand takes
 * long. Undefined if the folder is not all of the copy, or if the manifest is not complete.
 */
export function listCopy(copy: Copy, folder: string): FolderListing | undefined {
  if (copy.state !== 'ready' || copy.stripe || copy.version === null) return undefined
  if (relative(filesDirectory(copy.directory), folder) !== '') return undefined
  const present = readPresentFiles(copy.directory, copy.version)
  if (!present) return undefined
  const { texts, sizes } = present
  const mtimesMs = new Float64Array(sizes.length).fill(Number.NaN)
  return { files: new PackedFiles({ texts: texts.map(fromText), sizes, mtimesMs }), leftOut: [] }
}
