import { closeSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'

/** An end of a TCP connection on this machine. */
interface SocketEnd {
  readonly address: string
  readonly port: number
}

/** Longer than this nothing else waits for a table, ms. */
const MAX_TURN_MS = 1

/** Readings of the kernel's tables that begin when the one that goes on has ended. */
const nextTables = new Map<string, Promise<string>>()
const lastTables = new Map<string, Promise<string>>()

/**
 * The user who holds the other end of a loopback connection, as the kernel's table of sockets says (Linux). Undefined
 * where it is not there: the other end is on another machine or in another network namespace, or has gone.
 * `peer` is that end, `own` this one.
 */
export async function findSocketOwner(peer: SocketEnd, own: SocketEnd): Promise<number | undefined> {
  const ends = [plainEnd(peer), plainEnd(own)] as const
  if (ends[0].address.includes(':')) return findInTable('/proc/net/tcp6', ends)
  const owner = await findInTable('/proc/net/tcp', ends)
  // A client whose socket is for both families, as every Java virtual machine's, has addresses of IPv6 for IPv4.
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
  // An end that its process has closed is nobody's any more; the kernel soon says that it is user 0's.
  return inode === '0' ? undefined : Number(uid)
}

/**
 * A table that was read from now on. Writing it takes the kernel milliseconds where there are many connections, so
 * those who ask while it does share the next one; the one that is being read may not have theirs yet.
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
 * The kernel writes a page of it for each read. On this thread, for to ask another for each page takes thrice as long;
 * a client that connects for every object leaves thousands of lines.
 */
async function readTable(path: string): Promise<string> {
  const page = Buffer.allocUnsafe(64 * 1024)
  const pages: string[] = []
  const descriptor = openSync(path, 'r')
  try {
    for (let beganMs = performance.now(); ; ) {
      const bytesRead = readSync(descriptor, page, 0, page.length, null)
      if (bytesRead === 0) return pages.join('')
      pages.push(page.toString('latin1', 0, bytesRead))
      if (performance.now() - beganMs < MAX_TURN_MS) continue
      await setImmediate()
      beganMs = performance.now()
    }
  } finally {
    closeSync(descriptor)
  }
}

/** As in /proc/net/tcp: the address as 32-bit words in the byte order of the machine, in hexadecimal. */
function formatEnd(end: SocketEnd): string {
  const { address, port } = end
  const bytes = address.includes(':') ? parseV6(address) : address.split('.').map(Number)
  const words: string[] = []
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4).toReversed() // every machine that Node runs on is little-endian
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

/** A socket for both families sees clients of IPv4 as `::ffff:127.0.0.1`; their own end mostly has a plain address. */
function plainEnd({ address, port }: SocketEnd): SocketEnd {
  return { address: address.replace(/^::ffff:(?=\d+\.)/i, ''), port }
}

/** The same end of IPv4 as an address of IPv6 (RFC 4291, 2.5.5.2). */
function mappedEnd({ address, port }: SocketEnd): SocketEnd {
  const bytes = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
  return { address: `::ffff:${bytes[0]}${bytes[1]}:${bytes[2]}${bytes[3]}`, port }
}
