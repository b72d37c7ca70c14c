import { join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { parseByteSize } from '../../model/byte-size.js'

/** `256MiB` → bytes. */
export function parseMemory(text: string): number {
  try {
    return parseByteSize(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

export function parseWholeNumber(text: string): number {
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError('a whole number is expected')
  return Number(text)
}

export function parseCount(text: string): number {
  const count = parseWholeNumber(text)
  if (count < 1) throw new InvalidArgumentError('at least 1 is expected')
  return count
}

export function parseK(text: string): number | 'auto' {
  return text === 'auto' ? 'auto' : parseCount(text)
}

/** `web=1,code=2.5` → how often an epoch visits the samples of each. */
export function parseMix(text: string): Readonly<Record<string, number>> {
  const mix: Record<string, number> = {}
  for (const part of text.split(',')) {
    const at = part.lastIndexOf('=')
    const name = part.slice(0, at).trim()
    const times = Number(part.slice(at + 1))
    if (at < 1 || !Number.isFinite(times) || times < 0 || mix[name] !== undefined)
      throw new InvalidArgumentError(
        '<dataset>=<times> is expected for each part, for example web=1,code=2.5',
      )
    mix[name] = times
  }
  return mix
}

/** A TCP address. */
export interface Address {
  readonly host: string
  readonly port: number
}

export function parseAddress(text: string): Address {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text)
  if (!match) throw new InvalidArgumentError('host:port is expected')
  return { host: (match[1] ?? match[2])!, port: Number(match[3]) }
}

export function parseAddresses(text: string): readonly Address[] {
  return text.split(',').map(parseAddress)
}

type Environment = Readonly<Record<string, string | undefined>>

/** Where a feed listens unless told otherwise. */
export function defaultSocketPath(environment: Environment): string {
  if (environment.DSC_FEED_SOCKET) return environment.DSC_FEED_SOCKET
  const folder = environment.XDG_RUNTIME_DIR
    ? join(environment.XDG_RUNTIME_DIR, 'dsc')
    : `/tmp/dsc-${process.getuid?.() ?? 0}`
  return join(folder, 'feed.sock')
}

/** `png,.jpg` → extensions without their dots. */
export function parseExtensions(text: string): readonly string[] {
  return text.split(',').map((each) => each.trim().replace(/^\./, ''))
}
