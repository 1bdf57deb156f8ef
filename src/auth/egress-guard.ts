// Where the gateway may go for a URL that no operator wrote: one found in a challenge, in metadata, or written by a
// tenant. It must lead to a public address, when its name is resolved and when the connection is made, so that nobody
// reaches what only the gateway can reach (OWASP "Server Side Request Forgery Prevention").

import { lookup as lookUp } from 'node:dns'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'

/** Special-purpose addresses (RFC 6890 and the registry of IANA), multicast and what is reserved. */
const specialIPv4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  // Azure's own server for virtual machines.
  ['168.63.129.16', 32],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3]
] as const
/** Of global unicast, what is special or holds an IPv4 address: benchmarks, documentation, Teredo, 6to4. */
const specialIPv6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20]
] as const

export interface EgressGuard {
  /** @throws EgressRefused for a URL whose host is an address that may not be reached */
  check(url: URL): void
  /** For sockets: gives only addresses that may be reached, and fails with EgressRefused where there is none. */
  readonly lookup: LookupFunction
}

/** Nobody was asked. Its message goes to operators: it names the address. */
class EgressRefused extends Error {}

/** @param allow CIDR ranges that may be reached although they are not public, such as `10.1.0.0/16` */
export function createEgressGuard(allow: readonly string[] = []): EgressGuard {
  const special = new BlockList()
  for (const [address, prefix] of specialIPv4) special.addSubnet(address, prefix, 'ipv4')
  for (const [address, prefix] of specialIPv6) special.addSubnet(address, prefix, 'ipv6')
  const globalUnicast = new BlockList()
  globalUnicast.addSubnet('2000::', 3, 'ipv6')
  const allowed = new BlockList()
  for (const range of allow) {
    const [address = '', prefix = ''] = range.split('/')
    allowed.addSubnet(address, Number(prefix), isIPv4(address) ? 'ipv4' : 'ipv6')
  }

  function mayReach(address: string): boolean {
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (allowed.check(address, family)) return true
    return (family === 'ipv4' || globalUnicast.check(address, family)) && !special.check(address, family)
  }

  const refusal = (host: string, address: string): EgressRefused =>
    new EgressRefused(
      `${host === address ? address : `${host} (${address})`} is no public address, and nobody who runs this gateway ` +
        'wrote this URL. If it is meant, list its range under egress.allow.'
    )

  return {
    check({ hostname }) {
      const host = hostname.replace(/^\[(.*)\]$/, '$1')
      if (isIP(host) !== 0 && !mayReach(host)) throw refusal(host, host)
    },
    lookup(hostname, options, callback) {
      lookUp(hostname, { ...options, all: true }, (error, found) => {
        if (error !== null) return callback(error, [])
        const good = found.filter(({ address }) => mayReach(address))
        const [first] = good
        if (first === undefined) return callback(refusal(hostname, found[0]?.address ?? 'no address'), [])
        if (options.all === true) callback(null, good)
        else callback(null, first.address, first.family)
      })
    }
  }
}
