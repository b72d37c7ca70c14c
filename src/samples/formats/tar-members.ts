import { readSync } from 'node:fs'
import { type BytePath, fromBytes } from '../byte-path.js'
import { findDisguise } from './disguise.js'
import { BLOCK, ByteSums, hasItsSum, readNumber } from './tar-header.js'

/**
 * `file` · `sparse` its contents are a map of holes and the data between them, which only tar itself can read · links
 * have no contents here.
 */
export type TarMemberKind = 'file' | 'sparse' | 'hard-link' | 'symbolic-link'

/** A file inside a tar archive, or a link. */
export interface TarMember {
  readonly name: BytePath
  /** Position of its (first) header, in bytes. */
  readonly headerAt: number
  /** Position of its contents, in bytes. */
  readonly dataAt: number
  /** Size of its contents in the archive, in bytes. */
  readonly length: number
  readonly kind: TarMemberKind
}

/** An archive that cannot be read from `at` on. */
export class TarDamage extends Error {
  readonly at: number
  /** The step that makes the archive readable, if one is known. */
  readonly remedy: string | undefined

  constructor(at: number, what: string, remedy?: string) {
    super(what)
    this.at = at
    this.remedy = remedy
  }
}

/** Bytes to read at once, few enough to stay in the processor's cache until they have been scanned. */
const WINDOW_BYTES = 1 << 20

/** Records of a pax header about the member behind it: names → values. */
type PaxRecords = ReadonlyMap<string, string>

const NO_RECORDS: PaxRecords = new Map()

/** Part of an archive that is in memory: a walk looks there before it asks. */
export interface ArchiveWindow {
  /** Its position in the archive, in bytes. */
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

  /** Makes the window cover `length` bytes from `at` on, as far as file and window reach. */
  cover(at: number, length: number): void {
    const wanted = Math.min(length, WINDOW_BYTES, this.#sizeBytes - at)
    if (covers(this, at, wanted)) return
    this.start = at
    this.bytes = this.#room.subarray(0, readSync(this.#fd, this.#room, 0, WINDOW_BYTES, at))
  }
}

/** Bytes of an archive that a walk needs next: the window must cover them, as far as the archive reaches. */
export interface TarQuestion {
  readonly at: number
  readonly length: number
}

/** A walk yields questions, which the window answers, and members. */
type TarWalk = Generator<TarQuestion | TarMember, void, void>

/** Distinguishes members from questions. */
export function isMember(step: TarQuestion | TarMember): step is TarMember {
  return 'name' in step
}

/** Reads a tar archive on this machine from start to end; see `walkTar`. */
export class TarReader {
  readonly #window: FileWindow
  readonly #sizeBytes: number

  constructor(fd: number, sizeBytes: number) {
    this.#window = new FileWindow(fd, sizeBytes)
    this.#sizeBytes = sizeBytes
  }

  /** Yields files and links. Throws TarDamage if a header is damaged, or the archive ends early. */
  *members(): Generator<TarMember> {
    for (const step of walkTar(this.#sizeBytes, this.#window)) {
      if (isMember(step)) yield step
      else this.#window.cover(step.at, step.length)
    }
  }

  /** Returns some bytes of the archive, for a checksum while they are in memory; as many as need no other read. */
  bytes(at: number, length: number): Buffer {
    this.#window.cover(at, length)
    return atHand(this.#window, at, length)
  }
}

/**
 * Walks through the headers of a tar archive: ustar, GNU long names and sparse files, pax paths and sizes, base-256.
 * Custom code, because it needs positions instead of contents: it reads 1 MiB of a 1 GiB member, while packages for tar
 * stream all of it and report no positions. It reads nothing itself, so the archive may be elsewhere. Throws TarDamage
 * if a header is damaged, or the archive ends early. `from` (default 0): position of the first header; no header
 * affects anything behind the contents of its member.
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
      const link = LINKS.get(kind)
      if (link !== undefined) yield { name, headerAt, dataAt, length, kind: link }
      else if (REGULAR_KINDS.has(kind))
        yield { name, headerAt, dataAt, length, kind: isSparse ? 'sparse' : 'file' }
      if (kind === KIND.longTarget) continue // the target of a link that follows
      headerAt = undefined
      longName = undefined
      records = NO_RECORDS
    }
  }
  yield* checkEnd(at, sizeBytes, window)
}

/** Position of the header behind a member. */
export function endOfMember({ dataAt, length }: Pick<TarMember, 'dataAt' | 'length'>): number {
  return dataAt + Math.ceil(length / BLOCK) * BLOCK
}

/** A part of a walk that ends with a result. */
type TarStep<Result> = Generator<TarQuestion | TarMember, Result, void>

function covers({ start, bytes }: ArchiveWindow, at: number, length: number): boolean {
  return at >= start && at + length <= start + bytes.length
}

/** Returns up to `length` bytes of the window from `at` on; valid until it moves. */
function atHand({ start, bytes }: ArchiveWindow, at: number, length: number): Buffer {
  return bytes.subarray(at - start, at - start + length)
}

/** Reads bytes, valid until the next question. */
function* read(window: ArchiveWindow, at: number, length: number): TarStep<Buffer> {
  yield { at, length }
  return atHand(window, at, length)
}

/** Whether there is a header at `at`, instead of the block of zeros that ends an archive. */
function isHeader(sums: ByteSums, window: ArchiveWindow, at: number): boolean {
  const { bytes } = window
  const header = at - window.start
  const disguise = at === 0 ? findDisguise(bytes.subarray(header)) : undefined
  if (disguise) throw new TarDamage(at, disguise.what, disguise.remedy)
  if (!covers(window, at, BLOCK)) throw new TarDamage(at, 'the archive ends here without its end')
  const sum = sums.of(bytes, header, BLOCK)
  if (sum === 0) return false
  if (!hasItsSum(sums, sum, bytes, header)) throw new TarDamage(at, 'no header of a tar archive')
  return true
}

/** In GNU's old format, a sparse file's header is followed by more blocks of the map if byte 482 says so. */
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

/** Checks that only zeros follow the end: a header overwritten with zeros would hide the rest. */
function* checkEnd(endAt: number, sizeBytes: number, window: ArchiveWindow): TarStep<void> {
  for (let at = endAt; at < sizeBytes; ) {
    const bytes = yield* read(window, at, Math.min(WINDOW_BYTES, sizeBytes - at))
    if (bytes.length === 0) return
    if (bytes.some((byte) => byte !== 0))
      throw new TarDamage(endAt, 'the archive ends here, but more follows')
    at += bytes.length
  }
}

/** Kinds of headers, as in byte 156. */
const KIND = { longTarget: 0x4b, longName: 0x4c, pax: 0x78, sparse: 0x53 }

/** Regular files: POSIX, the ancient form, contiguous, GNU sparse. */
const REGULAR_KINDS: ReadonlySet<number> = new Set([0x30, 0, 0x37, KIND.sparse])

const LINKS: ReadonlyMap<number, TarMemberKind> = new Map([
  [0x31, 'hard-link'],
  [0x32, 'symbolic-link'],
])

/** Links, devices, folders and pipes: no contents follow, even if they state a size. */
const EMPTY_KINDS: ReadonlySet<number> = new Set([0x31, 0x32, 0x33, 0x34, 0x35, 0x36])

function sizeOf(records: PaxRecords, bytes: Buffer, header: number): number {
  const told = records.get('size')
  return told === undefined ? readNumber(bytes, header + 124, 12) : Number(told)
}

/** Reads a field up to its first NUL. It reads millions of headers, so it makes no views. */
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
