import { accessSync, constants } from 'node:fs'
import { dirname, join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { formatGroupOrder, parseGroupOrder } from '../../feed/plan/group-order.js'
import { ORDER_KINDS, type OrderKind } from '../../feed/plan/order.js'
import { parseByteSize } from '../../model/byte-size.js'
import { type HostPort, parseHostPort } from '../../model/host-port.js'
import { argument, parseCount } from '../arguments/parse-argument.js'

/** Parses `256MiB` into bytes. */
export const parseMemory = argument(parseByteSize)

/** Reads `auto`, or the number of samples per request. */
export const parseK = argument((raw) => (raw === 'auto' ? raw : parseCount(raw)))

/** Reads the name of an order. */
export function parseOrder(text: string): OrderKind {
  const kind = ORDER_KINDS.find((each) => each === text)
  const window = parseGroupOrder(text)
  if (kind) return kind
  if (window !== undefined) return formatGroupOrder(window)
  throw new InvalidArgumentError(`${ORDER_KINDS.join(', ')}, or groups-N is expected`)
}

/** Parses `web=1,code=2.5`: how often an epoch visits the samples of each. */
export function parseMix(text: string): Readonly<Record<string, number>> {
  const mix: Record<string, number> = {}
  for (const part of text.split(',')) {
    const at = part.lastIndexOf('=')
    const name = part.slice(0, at).trim()
    const times = Number(part.slice(at + 1).trim() || Number.NaN)
    if (at < 1 || !Number.isFinite(times) || times < 0 || mix[name] !== undefined)
      throw new InvalidArgumentError(
        '<dataset>=<times> is expected for each part, for example web=1,code=2.5',
      )
    mix[name] = times
  }
  return mix
}

/** Parses `gpu-1:7071,gpu-2:7071` into addresses. */
export function parseAddresses(text: string): readonly HostPort[] {
  return text.split(',').map((part) => parseHostPort(part.trim()))
}

type Environment = Readonly<Record<string, string | undefined>>

/** The socket on which a feed listens by default. */
export function defaultSocketPath(environment: Environment): string {
  if (environment.DSC_FEED_SOCKET) return environment.DSC_FEED_SOCKET
  const { XDG_RUNTIME_DIR: base } = environment
  const folder = base && isWritable(base) ? join(base, 'dsc') : `/tmp/dsc-${process.getuid?.() ?? 0}`
  return join(folder, 'feed.sock')
}

/** Whether this user can create files there. Slurm and su pass on the name of another machine's or user's folder. */
function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch (error) {
    const parent = dirname(folder)
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && parent !== folder && isWritable(parent)
  }
}
