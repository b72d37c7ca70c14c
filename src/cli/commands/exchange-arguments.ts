import { InvalidArgumentError } from 'commander'

/** Where `dsc exchange serve` listens unless told otherwise. */
export const DEFAULT_PORT = 7171

/** A parser, for commander, of numbers from `least` up. */
export function parseNumber(least: number, kind: 'number' | 'integer' = 'number'): (raw: string) => number {
  return (raw) => {
    const value = Number(raw)
    const isWrongKind = !Number.isFinite(value) || (kind === 'integer' && !Number.isInteger(value))
    if (raw.trim() === '' || isWrongKind || value < least) {
      throw new InvalidArgumentError(
        `expected ${kind === 'integer' ? 'an integer' : 'a number'} from ${least} up.`,
      )
    }
    return value
  }
}

/** Where something listens. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`, `[v6]:port` or a host alone, for which `defaultPort` holds. */
export function parseHostPort(defaultPort: number): (raw: string) => HostPort {
  return (raw) => {
    const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(raw)
    const host = match?.[1] ?? match?.[2]
    const port = match?.[3] === undefined ? defaultPort : Number(match[3])
    if (!host || port > 65535) throw new InvalidArgumentError('expected host:port, for example gpu-1:7171.')
    return { host, port }
  }
}
