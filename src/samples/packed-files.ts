import type { BytePath } from './byte-path.js'

/** A file below a folder. */
export interface ListedFile {
  /** Relative to the folder. */
  readonly path: BytePath
  readonly size: number
  /** NaN: not known. */
  readonly mtimeMs: number
}

interface FileColumns {
  /** Paths in byte order, in pieces: within a piece they are separated by NUL. */
  readonly texts: readonly BytePath[]
  readonly sizes: Float64Array
  readonly mtimesMs: Float64Array
}

/** Files in byte order of their paths, in columns: to make and collect an object for each takes longer than to list them. */
export class PackedFiles implements FileColumns {
  readonly texts: readonly BytePath[]
  readonly sizes: Float64Array
  readonly mtimesMs: Float64Array
  #list: readonly ListedFile[] | undefined

  /** `list`: the same files as objects, if they are made already. */
  constructor({ texts, sizes, mtimesMs }: FileColumns, list?: readonly ListedFile[]) {
    this.texts = texts
    this.sizes = sizes
    this.mtimesMs = mtimesMs
    this.#list = list
  }

  get count(): number {
    return this.sizes.length
  }

  /** An object for each file. */
  list(): readonly ListedFile[] {
    this.#list ??= this.texts
      .flatMap((text) => text.split('\0'))
      .map((path, i) => ({ path, size: this.sizes[i]!, mtimeMs: this.mtimesMs[i]! }))
    return this.#list
  }
}

/** Puts files into columns. */
export function packFiles(files: readonly ListedFile[]): PackedFiles {
  const columns = {
    texts: files.length === 0 ? [] : [files.map(({ path }) => path).join('\0')],
    sizes: Float64Array.from(files, ({ size }) => size),
    mtimesMs: Float64Array.from(files, ({ mtimeMs }) => mtimeMs),
  }
  return new PackedFiles(columns, files)
}
