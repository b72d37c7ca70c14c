import { closeSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { atEndNow } from '../failure/closers.js'

/** An end of a TCP connection on this machine. */
interface SocketEnd {
  readonly address: string
  readonly port: number
}

/** Maximum time that reading a table blocks this thread's other work, ms. */
const MAX_TURN_MS = 1

/** Readings of the kernel's tables that start after the current one. */
const nextTables = new Map<string, Promise<string>>()
const lastTables = new Map<string, Promise<string>>()

/**
 * The user who owns the other end of a loopback connection, from the kernel's socket table (Linux). Undefined if it is
 * missing there: the other end is on another machine or in another network namespace, or is gone. `peer` is that end,
 * `own` this one.
 */
export async function findSocketOwner(peer: SocketEnd, own: SocketEnd): Promise<number | undefined> {
  const ends = [plainEnd(peer), plainEnd(own)] as const
  if (ends[0].address.includes(':')) return findInTable('/proc/net/tcp6', ends)
  const owner = await findInTable('/proc/net/tcp', ends)
  // A client with a dual-stack socket, as every Java virtual machine's, has IPv6 forms of IPv4 addresses.
  return owner ?? findInTable('/proc/net/tcp6', [mappedEnd(ends[0]), mappedEnd(ends[1])])
}

async function findInTable(
  path: string,
  [peer, own]: readonly [SocketEnd, SocketEnd],
): Promise<number | undefined> {
  const table = await readNextTable(path)
  // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
  const at = table.indexOf(` ${formatEnd(peer)} ${formatEnd(own)} `)
  if (at === -1) return undefined
  const [, , , , , , uid, , inode] = table.slice(at, table.indexOf('\n', at)).trim().split(/\s+/)
  // An end that its process closed has no owner; the kernel soon reports it as user 0's.
  return inode === '0' ? undefined : Number(uid)
}

/**
 * Reads a table from now on. Writing it takes the kernel milliseconds if there are many connections, so callers during
 * a reading share the next one; the current one may not include their connection yet.
 */
function readNextTable(path: string): Promise<string> {
  const waiting = nextTables.get(path)
  if (waiting) return waiting
  const next = Promise.resolve(lastTables.get(path)).then(() => {
    nextTables.delete(path)
    const reading = readTable(path).catch(() => '')
    lastTables.set(path, reading)
    return reading
  })
  nextTables.set(path, next)
  return next
}

/**
 * Reads a table, which the kernel writes one page per read. On this thread: asking another for each page takes three
 * times as long. A client that connects for every object leaves thousands of lines.
 */
async function readTable(path: string): Promise<string> {
  const page = Buffer.allocUnsafe(64 * 1024)
  const pages: string[] = []
  const descriptor = openSync(path, 'r')
  using _ = atEndNow(() => closeSync(descriptor))
  for (let beganMs = performance.now(); ; ) {
    const bytesRead = readSync(descriptor, page, 0, page.length, null)
    if (bytesRead === 0) return pages.join('')
    pages.push(page.toString('latin1', 0, bytesRead))
    if (performance.now() - beganMs < MAX_TURN_MS) continue
    await setImmediate()
    beganMs = performance.now()
  }
}

/** As in /proc/net/tcp: the address as 32-bit words in the machine's byte order, in hexadecimal. */
function formatEnd(end: SocketEnd): string {
  const { address, port } = end
  const bytes = address.includes(':') ? parseV6(address) : address.split('.').map(Number)
  const words: string[] = []
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4).toReversed() // every machine that runs Node is little-endian
    words.push(word.map((byte) => byte.toString(16).padStart(2, '0')).join(''))
  }
  return `${words.join('')}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}

function parseV6(address: string): readonly number[] {
  const [head = '', tail] = address.split('::', 2)
  const front = head.split(':').filter(Boolean)
  const back = (tail ?? '').split(':').filter(Boolean)
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return [...front, ...(tail === undefined ? [] : zeros), ...back].flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

/** A dual-stack socket sees IPv4 clients as `::ffff:127.0.0.1`; their own end usually has a plain address. */
function plainEnd({ address, port }: SocketEnd): SocketEnd {
  return { address: address.replace(/^::ffff:(?=\d+\.)/i, ''), port }
}

/** The IPv6 form of an IPv4 end (RFC 4291, 2.5.5.2). */
function mappedEnd({ address, port }: SocketEnd): SocketEnd {
  const bytes = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
  return { address: `::ffff:${bytes[0]}${bytes[1]}:${bytes[2]}${bytes[3]}`, port }
}
