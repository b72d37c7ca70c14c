import { readFileSync, statSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, toBytes, toText } from '../byte-path.js'

/** Maximum size of an index, in bytes. */
const LARGEST_INDEX_BYTES = 256 << 20

/** The folder part of a path with its slash, or ''. */
export function folderOf(path: BytePath): BytePath {
  return path.slice(0, path.lastIndexOf('/') + 1)
}

/**
 * Reads the `index.json` beside shards; undefined without one. Throws COPY_DAMAGED if too large or not a JSON object.
 */
export function readIndexJson(
  root: BytePath,
  folder: BytePath,
): Readonly<Record<string, unknown>> | undefined {
  const path = toBytes(`${root}/${folder}index.json`)
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  if (size === undefined) return undefined
  try {
    if (size > LARGEST_INDEX_BYTES) throw new Error(`it has ${size} bytes`)
    const value: unknown = JSON.parse(readFileSync(path).toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
    throw new Error('it is no JSON object')
  } catch (error) {
    throw badIndex(folder, (error as Error).message)
  }
}

/** Makes the error for a bad `index.json`. */
export function badIndex(folder: BytePath, what: string): DscError {
  return new DscError('COPY_DAMAGED', `${toText(folder)}index.json cannot be read: ${what}`, {
    hint: 'fetch the file again',
  })
}
