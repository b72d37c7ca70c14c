import { readSync } from 'node:fs'
import { type BytePath, fromBytes } from '../byte-path.js'
import { BLOCK, ByteSums, hasItsSum, readNumber } from './tar-header.js'

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

/** Bytes that are read at once: what stays in a cache of the processor until it has been looked through. */
const WINDOW_BYTES = 1 << 20

/** What a pax header says of the member behind it; names of records → values. */
type PaxRecords = ReadonlyMap<string, string>

const NO_RECORDS: PaxRecords = new Map()

/** Part of an archive that is at hand: a walk looks there before it asks. */
export interface ArchiveWindow {
  /** Where it begins in the archive, in bytes. */
  readonly start: number
  readonly bytes: Buffer
}

/** Part of a file, read ahead. */
class FileWindow implements ArchiveWindow {
  start = 0
  bytes = Buffer.alloc(0)
  readonly #fd: number
  readonly #sizeBytes: number
  readonly #room = Buffer.allocUnsafeSlow(WINDOW_BYTES)

  constructor(fd: number, sizeBytes: number) {
    this.#fd = fd
    this.#sizeBytes = sizeBytes
  }

  /** Has the window cover `length` bytes from `at` on, as far as file and window go. */
  cover(at: number, length: number): void {
    const wanted = Math.min(length, WINDOW_BYTES, this.#sizeBytes - at)
    if (covers(this, at, wanted)) return
    this.start = at
    this.bytes = this.#room.subarray(0, readSync(this.#fd, this.#room, 0, WINDOW_BYTES, at))
  }
}

/** Bytes of an archive that a walk through it needs next: the window is to cover them, as far as the archive goes. */
export interface TarQuestion {
  readonly at: number
  readonly length: number
}

/** A walk yields questions, which the window answers, and members. */
type TarWalk = Generator<TarQuestion | TarMember, void, void>

/** Tells apart what a walk yields. */
export function isMember(step: TarQuestion | TarMember): step is TarMember {
  return 'name' in step
}

/** Reads a tar archive of this machine from its start to its end, see `walkTar`. */
export class TarReader {
  readonly #window: FileWindow
  readonly #sizeBytes: number

  constructor(fd: number, sizeBytes: number) {
    this.#window = new FileWindow(fd, sizeBytes)
    this.#sizeBytes = sizeBytes
  }

  /** The regular members. Throws TarDamage where a header is damaged, or the archive ends before its end. */
  *members(): Generator<TarMember> {
    for (const step of walkTar(this.#sizeBytes, this.#window)) {
      if (isMember(step)) yield step
      else this.#window.cover(step.at, step.length)
    }
  }

  /** Some bytes of the archive, for a checksum while they are at hand; as many as there are without another read. */
  bytes(at: number, length: number): Buffer {
    this.#window.cover(at, length)
    return atHand(this.#window, at, length)
  }
}

/**
 * Walks through the headers of a tar archive: ustar, GNU long names and sparse files, pax paths and sizes, base-256.
 * By hand, because places are wanted and not contents: of a member of 1 GiB it reads 1 MiB, where packages for tar
 * stream all of it and name no place. It reads nothing itself, so that an archive may be elsewhere. Throws TarDamage
 * where a header is damaged, or the archive ends before its end. `from` (default 0): where the first header stands; no
 * header says anything of what comes behind the contents of its member.
 */
export function* walkTar(sizeBytes: number, window: ArchiveWindow, from = 0): TarWalk {
  const sums = new ByteSums()
  let at = from
  let headerAt: number | undefined
  let longName: BytePath | undefined
  let records = NO_RECORDS
  for (;;) {
    if (!covers(window, at, BLOCK)) yield { at, length: BLOCK }
    const { bytes } = window
    const header = at - window.start
    if (!isHeader(sums, window, at)) break
    headerAt ??= at
    const kind = bytes[header + 156]!
    const length = EMPTY_KINDS.has(kind) ? 0 : sizeOf(records, bytes, header)
    if (!Number.isSafeInteger(length) || length < 0) throw new TarDamage(at, 'a header without a size')
    const name = records.get('GNU.sparse.name') ?? records.get('path') ?? longName ?? plainName(bytes, header)
    const isSparse = kind === KIND.sparse || records.has('GNU.sparse.major') || records.has('GNU.sparse.size')
    const mapBytes = kind === KIND.sparse ? yield* sparseHeaderBytes(window, at, bytes[header + 482]!) : 0
    const dataAt = at + BLOCK + mapBytes
    at = endOfMember({ dataAt, length })
    if (dataAt + length > sizeBytes) throw new TarDamage(headerAt, 'the archive ends inside this member')
    if (kind === KIND.longName) longName = text(yield* readWhole(window, dataAt, length))
    else if (kind === KIND.pax) records = parsePax(yield* readWhole(window, dataAt, length), dataAt)
    else {
      if (REGULAR_KINDS.has(kind)) yield { name, headerAt, dataAt, length, isSparse }
      if (kind === KIND.longTarget) continue // the target of a link that follows
      headerAt = undefined
      longName = undefined
      records = NO_RECORDS
    }
  }
  yield* checkEnd(at, sizeBytes, window)
}

/** Where the header behind a member stands. */
export function endOfMember({ dataAt, length }: Pick<TarMember, 'dataAt' | 'length'>): number {
  return dataAt + Math.ceil(length / BLOCK) * BLOCK
}

/** A part of a walk that ends with something. */
type TarStep<Result> = Generator<TarQuestion | TarMember, Result, void>

function covers({ start, bytes }: ArchiveWindow, at: number, length: number): boolean {
  return at >= start && at + length <= start + bytes.length
}

/** Up to `length` bytes of the window from `at` on; valid until it moves. */
function atHand({ start, bytes }: ArchiveWindow, at: number, length: number): Buffer {
  return bytes.subarray(at - start, at - start + length)
}

/** Valid until the next question. */
function* read(window: ArchiveWindow, at: number, length: number): TarStep<Buffer> {
  yield { at, length }
  return atHand(window, at, length)
}

/** Whether a header stands at `at`, and not the block of zeros that ends an archive. */
function isHeader(sums: ByteSums, window: ArchiveWindow, at: number): boolean {
  if (!covers(window, at, BLOCK)) throw new TarDamage(at, 'the archive ends here without its end')
  const { bytes } = window
  const header = at - window.start
  const sum = sums.of(bytes, header, BLOCK)
  if (sum === 0) return false
  if (!hasItsSum(sums, sum, bytes, header)) throw new TarDamage(at, 'no header of a tar archive')
  return true
}

/** Headers of a sparse file in GNU's old format are followed by blocks of more map, if byte 482 says so. */
function* sparseHeaderBytes(window: ArchiveWindow, at: number, extended: number): TarStep<number> {
  let bytes = 0
  for (let isExtended = extended === 1; isExtended; ) {
    bytes += BLOCK
    const block = yield* read(window, at + bytes, BLOCK)
    if (block.length < BLOCK) throw new TarDamage(at, 'the archive ends inside this member')
    isExtended = block[504] === 1
  }
  return bytes
}

function* readWhole(window: ArchiveWindow, at: number, length: number): TarStep<Buffer> {
  if (length > WINDOW_BYTES) throw new TarDamage(at, `a name of ${length} bytes`)
  return yield* read(window, at, length)
}

/** Behind the end there are only zeros: a header that was overwritten with them would hide what follows. */
function* checkEnd(endAt: number, sizeBytes: number, window: ArchiveWindow): TarStep<void> {
  for (let at = endAt; at < sizeBytes; ) {
    const bytes = yield* read(window, at, Math.min(WINDOW_BYTES, sizeBytes - at))
    if (bytes.length === 0) return
    if (bytes.some((byte) => byte !== 0))
      throw new TarDamage(endAt, 'the archive ends here, but more follows')
    at += bytes.length
  }
}

/** What a header describes, as it stands in byte 156. */
const KIND = { longTarget: 0x4b, longName: 0x4c, pax: 0x78, sparse: 0x53 }

/** Regular files: POSIX, the ancient form, contiguous, GNU sparse. */
const REGULAR_KINDS: ReadonlySet<number> = new Set([0x30, 0, 0x37, KIND.sparse])

/** Links, devices, folders and pipes: nothing follows them, whatever size they have. */
const EMPTY_KINDS: ReadonlySet<number> = new Set([0x31, 0x32, 0x33, 0x34, 0x35, 0x36])

function sizeOf(records: PaxRecords, bytes: Buffer, header: number): number {
  const told = records.get('size')
  return told === undefined ? readNumber(bytes, header + 124, 12) : Number(told)
}

/** Up to the first NUL of a field. Millions of headers are read so: no view is made of any. */
function text(bytes: Buffer, start = 0, limit = bytes.length): BytePath {
  let end = start
  while (end < limit && bytes[end] !== 0) end++
  return bytes.toString('latin1', start, end)
}

function plainName(bytes: Buffer, header: number): BytePath {
  const isPosix =
    bytes[header + 345] !== 0 && bytes.toString('latin1', header + 257, header + 263) === 'ustar\0'
  const name = text(bytes, header, header + 100)
  return isPosix ? `${text(bytes, header + 345, header + 500)}/${name}` : name
}

/** Records are `<length of the whole record> <name>=<value>\n`. */
function parsePax(bytes: Buffer, startAt: number): PaxRecords {
  const records = new Map<string, string>()
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const size = Number(fromBytes(bytes.subarray(at, Math.max(at, space))))
    if (space < 0 || !Number.isSafeInteger(size) || size <= space - at || at + size > bytes.length)
      throw new TarDamage(startAt, 'a pax header that cannot be read')
    const record = fromBytes(bytes.subarray(space + 1, at + size - 1))
    const equals = record.indexOf('=')
    records.set(record.slice(0, equals), record.slice(equals + 1))
    at += size
  }
  return records
}
