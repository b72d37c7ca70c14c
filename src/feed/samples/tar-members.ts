import { readSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'

/** A regular file inside a tar archive. */
export interface TarMember {
  readonly name: string
  /** Where its (first) header begins, in bytes. */
  readonly headerAt: number
  /** Where its contents begin, in bytes. */
  readonly dataAt: number
  readonly length: number
}

const BLOCK = 512

/** Lists the regular members of the open tar file `fd` of `sizeBytes`. Knows ustar, GNU long names and pax paths. */
export function listTarMembers(fd: number, sizeBytes: number, path: string): TarMember[] {
  const members: TarMember[] = []
  const header = Buffer.alloc(BLOCK)
  let at = 0
  let longName: string | undefined
  let firstHeaderAt: number | undefined
  while (at + BLOCK <= sizeBytes) {
    if (readSync(fd, header, 0, BLOCK, at) !== BLOCK || header.every((byte) => byte === 0)) break
    const length = readNumber(header.subarray(124, 136))
    if (!hasValidChecksum(header) || !(length >= 0))
      throw new DscError('COPY_DAMAGED', `${path} is no tar archive: bad header at byte ${at}`)
    const dataAt = at + BLOCK
    const kind = String.fromCharCode(header[156]!)
    firstHeaderAt ??= at
    if (kind === 'L' || kind === 'x') {
      const extra = Buffer.alloc(length)
      readSync(fd, extra, 0, length, dataAt)
      if (kind === 'L') longName = text(extra)
      else longName = findPaxPath(extra) ?? longName
    } else {
      if (kind === '0' || kind === '\0')
        members.push({ name: longName ?? plainName(header), headerAt: firstHeaderAt, dataAt, length })
      if (kind !== 'g') longName = undefined
      firstHeaderAt = undefined
    }
    at = dataAt + Math.ceil(length / BLOCK) * BLOCK
    if (at > sizeBytes && dataAt + length > sizeBytes)
      throw new DscError('COPY_DAMAGED', `${path} ends inside a member: ${sizeBytes} of ${at} bytes`)
  }
  return members
}

const text = (field: Uint8Array) => Buffer.from(field).toString().split('\0', 1)[0]!

function plainName(header: Buffer): string {
  const prefix = header.subarray(257, 262).toString() === 'ustar' ? text(header.subarray(345, 500)) : ''
  const name = text(header.subarray(0, 100))
  return prefix && header[263] !== 0x20 ? `${prefix}/${name}` : name
}

/** Octal text, or GNU base-256 when the top bit is set. */
function readNumber(field: Buffer): number {
  if ((field[0]! & 0x80) === 0) return Number.parseInt(text(field).trim() || '0', 8)
  return field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0)
}

function hasValidChecksum(header: Buffer): boolean {
  const stated = readNumber(header.subarray(148, 156))
  return header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 32 : byte), 0) === stated
}

function findPaxPath(extra: Buffer): string | undefined {
  for (let at = 0; at < extra.length; ) {
    const space = extra.indexOf(0x20, at)
    const size = Number(extra.subarray(at, space).toString())
    if (!(size > 0)) return undefined
    const record = extra.subarray(space + 1, at + size - 1).toString()
    if (record.startsWith('path=')) return record.slice(5)
    at += size
  }
  return undefined
}
