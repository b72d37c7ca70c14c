import { lookup as lookupName } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** Addresses that mean something else on each machine: loopback, link-local, and where clouds serve credentials. */
const LOCAL = new BlockList()
LOCAL.addSubnet('0.0.0.0', 8)
LOCAL.addSubnet('127.0.0.0', 8)
LOCAL.addSubnet('169.254.0.0', 16)
LOCAL.addSubnet('::', 127, 'ipv6')
LOCAL.addSubnet('fe80::', 10, 'ipv6')
LOCAL.addAddress('fd00:ec2::254', 'ipv6')

/** A name that leads to an address of this machine. */
class LocalAddressError extends Error {
  readonly code = 'LOCAL_ADDRESS'
}

/** Whether a host, as in a URL, is this machine or its link without a look at DNS. */
export function isLocalHost(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isIP(name) === 0 ? /(^|\.)localhost$/i.test(name) : isLocalAddress(name)
}

/** Looks a name up, and refuses addresses of this machine and its link. */
export const lookupElsewhere: LookupFunction = (name, options, callback) => {
  lookupName(name, options, (error, found, family) => {
    const addresses = typeof found === 'string' ? [found] : (found?.map(({ address }) => address) ?? [])
    const local = addresses.find(isLocalAddress)
    if (local === undefined) callback(error, found, family)
    else callback(new LocalAddressError(`${name} is ${local} on this node`), [])
  })
}

function isLocalAddress(address: string): boolean {
  return LOCAL.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
