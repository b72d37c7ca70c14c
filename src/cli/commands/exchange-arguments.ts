import { InvalidArgumentError } from 'commander'
import { parseHostPort } from '../../model/host-port.js'
import { argument } from '../arguments/parse-argument.js'

/** Default port of `dsc exchange serve`. */
export const DEFAULT_PORT = 7171

/** A commander parser for numbers of at least `least`. */
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

/** Parses the address of a rendezvous: `host:port`, or a host alone, which means `DEFAULT_PORT`. */
export const parseRendezvous = argument((raw) => parseHostPort(raw, DEFAULT_PORT))
