import { parseHostPort } from '../../model/host-port.js'
import { argument } from '../arguments/parse-argument.js'

/** Default port of `dsc exchange serve`. */
export const DEFAULT_PORT = 7171

/** Parses the address of a rendezvous: `host:port`, or a host alone, which means `DEFAULT_PORT`. */
export const parseRendezvous = argument((raw) => parseHostPort(raw, DEFAULT_PORT))
