import { readSync } from 'node:fs'
import { type BytePath, fromBytes } from '../byte-path.js'

/** A regular file inside a tar archive. */
export interface TarMember {
  readonly name: BytePath
  /** Where its (first) header begins, in bytes. */
  readonly headerAt: number
  /** Where its contents begin, in bytes. */
  readonly dataAt: number
  /** Bytes of its contents in the archive. */
  readonly length: number
  /** Whether the contents are a map of holes and what lies between them: only tar itself can read them. */
  readonly isSparse: boolean
}

/** An archive that cannot be read from `at` on. */
export class TarDamage extends Error {
  readonly at: number

  constructor(at: number, what: string) {
    super(what)
    this.at = at
  }
}

const BLOCK = 512

/** Bytes that are read at once. */
const WINDOW_BYTES = 4 << 20

/** What a pax header says of the member behind it; names of records → values. */
type PaxRecords = ReadonlyMap<string, string>

const NO_RECORDS: PaxRecords = new Map()

/** Part of a file, read ahead. */
class FileWindow {
  readonly #fd: number
  readonly #sizeBytes: number
  readonly #window = Buffer.allocUnsafeSlow(WINDOW_BYTES)
  #start = 0
  #filled = 0

  constructor(fd: number, sizeBytes: number) {
    this.#fd = fd
    this.#sizeBytes = sizeBytes
  }

  /** Up to `length` bytes from `at` on, fewer only at the end of the file or of the window; valid until the next call. */
  read(at: number, length: number): Buffer {
    const wanted = Math.min(length, WINDOW_BYTES, this.#sizeBytes - at)
    if (at < this.#start || at + wanted > this.#start + this.#filled) {
      this.#start = at
      this.#filled = readSync(this.#fd, this.#window, 0, WINDOW_BYTES, at)
    }
    return this.#window.subarray(at - this.#start, Math.min(at - this.#start + wanted, this.#filled))
  }
}

/** Bytes of an archive that a walk through it needs next: up to `length` of them, fewer only at its end. */
export interface TarQuestion {
  readonly at: number
  readonly length: number
}

/** A walk yields questions, to be answered with `next`, and members. */
type TarWalk = Generator<TarQuestion | TarMember, void, Buffer | undefined>

/** Tells apart what a walk yields. */
export function isMember(step: TarQuestion | TarMember): step is TarMember {
  return 'name' in step
}

/** Reads a tar archive of this machine from its start to its end, see `walkTar`. */
export class TarReader {
  readonly #file: FileWindow
  readonly #sizeBytes: number

  constructor(fd: number, sizeBytes: number) {
    this.#file = new FileWindow(fd, sizeBytes)
    this.#sizeBytes = sizeBytes
  }

  /** The regular members. Throws TarDamage where a header is damaged, or the archive ends before its end. */
  *members(): Generator<TarMember> {
    const walk = walkTar(this.#sizeBytes)
    for (let step = walk.next(); !step.done; ) {
      if (isMember(step.value)) {
        yield step.value
        step = walk.next()
      } else step = walk.next(this.#file.read(step.value.at, step.value.length))
    }
  }

  /** Some bytes of the archive, for a checksum while they are at hand; as many as there are without another read. */
  bytes(at: number, length: number): Buffer {
    return this.#file.read(at, length)
  }
}

/**
 * Walks through the headers of a tar archive: ustar, GNU long names and sparse files, pax paths and sizes, base-256.
 * By hand, because places are wanted and not contents: of a member of 1 GiB it reads 4 MiB, where packages for tar
 * stream all of it and name no place. It reads nothing itself, so that an archive may be elsewhere. Throws TarDamage
 * where a header is damaged, or the archive ends before its end.
 */
export function* walkTar(sizeBytes: number): TarWalk {
  let at = 0
  let headerAt: number | undefined
  let longName: BytePath | undefined
  let records = NO_RECORDS
  for (;;) {
    const header = yield* readHeader(at)
    if (!header) break
    headerAt ??= at
    const length = records.has('size') ? Number(records.get('size')) : readNumber(header, 124, 12)
    if (!Number.isSafeInteger(length) || length < 0) throw new TarDamage(at, 'a header without a size')
    const kind = String.fromCharCode(header[156]!)
    const name = records.get('GNU.sparse.name') ?? records.get('path') ?? longName ?? plainName(header)
    const isSparse = kind === 'S' || records.has('GNU.sparse.major') || records.has('GNU.sparse.size')
    const dataAt = at + BLOCK + (kind === 'S' ? yield* sparseHeaderBytes(at, header[482]!) : 0)
    at = dataAt + Math.ceil(length / BLOCK) * BLOCK
    if (dataAt + length > sizeBytes) throw new TarDamage(headerAt, 'the archive ends inside this member')
    if (kind === 'L') longName = text(yield* readWhole(dataAt, length))
    else if (kind === 'x') records = parsePax(yield* readWhole(dataAt, length), dataAt)
    else {
      if (REGULAR_KINDS.has(kind)) yield { name, headerAt, dataAt, length, isSparse }
      if (kind === 'K') continue // the target of a link that follows
      headerAt = undefined
      longName = undefined
      records = NO_RECORDS
    }
  }
  yield* checkEnd(at, sizeBytes)
}

/** A part of a walk that ends with something. */
type TarStep<Result> = Generator<TarQuestion | TarMember, Result, Buffer | undefined>

/** Valid until the next question. */
function* read(at: number, length: number): TarStep<Buffer> {
  return (yield { at, length })!
}

/** The header at `at`; undefined at the block of zeros that ends an archive. */
function* readHeader(at: number): TarStep<Buffer | undefined> {
  const header = yield* read(at, BLOCK)
  if (header.length < BLOCK) throw new TarDamage(at, 'the archive ends here without its end')
  const sum = sumBytes(header, 0, BLOCK)
  if (sum === 0) return undefined
  if (readNumber(header, 148, 8) === sum - sumBytes(header, 148, 156) + 8 * 32) return header
  throw new TarDamage(at, 'no header of a tar archive')
}

/** Headers of a sparse file in GNU's old format are followed by blocks of more map, if byte 482 says so. */
function* sparseHeaderBytes(at: number, extended: number): TarStep<number> {
  let bytes = 0
  for (let isExtended = extended === 1; isExtended; ) {
    bytes += BLOCK
    const block = yield* read(at + bytes, BLOCK)
    if (block.length < BLOCK) throw new TarDamage(at, 'the archive ends inside this member')
    isExtended = block[504] === 1
  }
  return bytes
}

function* readWhole(at: number, length: number): TarStep<Buffer> {
  if (length > WINDOW_BYTES) throw new TarDamage(at, `a name of ${length} bytes`)
  return yield* read(at, length)
}

/** Behind the end there are only zeros: a header that was overwritten with them would hide what follows. */
function* checkEnd(endAt: number, sizeBytes: number): TarStep<void> {
  for (let at = endAt; at < sizeBytes; ) {
    const bytes = yield* read(at, Math.min(WINDOW_BYTES, sizeBytes - at))
    if (bytes.length === 0) return
    if (sumBytes(bytes, 0, bytes.length) !== 0)
      throw new TarDamage(endAt, 'the archive ends here, but more follows')
    at += bytes.length
  }
}

/** Regular files: POSIX, the ancient form, contiguous, GNU sparse. */
const REGULAR_KINDS: ReadonlySet<string> = new Set(['0', '\0', '7', 'S'])

/** Up to the first NUL of a field. Millions of headers are read so: no view is made of any. */
function text(bytes: Buffer, start = 0, limit = bytes.length): BytePath {
  let end = start
  while (end < limit && bytes[end] !== 0) end++
  return bytes.toString('latin1', start, end)
}

function sumBytes(bytes: Uint8Array, start: number, end: number): number {
  let sum = 0
  for (let i = start; i < end; i++) sum += bytes[i]!
  return sum
}

function plainName(header: Buffer): BytePath {
  const isPosix = header[345] !== 0 && header.toString('latin1', 257, 263) === 'ustar\0'
  const name = text(header, 0, 100)
  return isPosix ? `${text(header, 345, 500)}/${name}` : name
}

/** Octal text, or base-256 where the top bit is set; NaN for anything else. */
function readNumber(header: Buffer, at: number, length: number): number {
  const first = header[at]!
  if (first & 0x80) {
    let value = first & 0x7f
    for (let i = at + 1; i < at + length; i++) value = value * 256 + header[i]!
    return value
  }
  let value = 0
  let isBegun = false
  for (let i = at; i < at + length; i++) {
    const byte = header[i]!
    if (byte >= 0x30 && byte <= 0x37) value = value * 8 + byte - 0x30
    else if (byte !== 0 && byte !== 0x20) return Number.NaN
    else if (isBegun) return value
    isBegun = byte !== 0x20 && byte !== 0
  }
  return value
}

/** Records are `<length of the whole record> <name>=<value>\n`. */
function parsePax(bytes: Buffer, startAt: number): PaxRecords {
  const records = new Map<string, string>()
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const size = Number(fromBytes(bytes.subarray(at, Math.max(at, space))))
    if (!Number.isSafeInteger(size) || size <= space - at || at + size > bytes.length)
      throw new TarDamage(startAt, 'a pax header that cannot be read')
    const record = fromBytes(bytes.subarray(space + 1, at + size - 1))
    const equals = record.indexOf('=')
    records.set(record.slice(0, equals), record.slice(equals + 1))
    at += size
  }
  return records
}
