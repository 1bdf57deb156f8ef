// Where the gateway may go for a URL that no operator wrote: one found in a challenge, in metadata, or written by a
// tenant. It must lead to a public address, when its name is resolved and when the connection is made, so that nobody
// reaches what only the gateway can reach (OWASP "Server Side Request Forgery Prevention").

import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createGuardedNames, type ResolveName } from './guarded-names.ts'

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
  /** @throws EgressRefused for a URL whose host is an address that may not be reached, or not at its port */
  check(url: URL): void
  /**
   * For sockets to this port: gives only addresses that may be reached, and fails with EgressRefused where there is
   * none. The address that was judged is the one that is connected to, so that no name can change in between.
   * @param owner as `ResolveName` has it
   */
  lookup(port: number, owner: string): LookupFunction
}

export interface EgressLimits {
  /** CIDR ranges that may be reached although they are not public, at any port, such as `10.1.0.0/16`. */
  readonly allow?: readonly string[]
  /** Ports of public addresses beside 443. */
  readonly ports?: readonly number[]
  /** Name servers; default: those of the system. */
  readonly servers?: readonly string[] | undefined
}

/** Nobody was asked. Its message goes to operators: it names the address. */
class EgressRefused extends Error {
  readonly code = 'EGRESS_REFUSED'
}

/**
 * @param resolve the addresses of a name; default: those of the hosts file and in DNS, and names without a dot where
 * ranges are listed
 * @param ownAddresses of this machine, which may be public: what listens there may trust whoever comes from it
 */
export function createEgressGuard(
  { allow = [], ports = [], servers }: EgressLimits = {},
  resolve: ResolveName = createGuardedNames({ local: allow.length > 0, servers }),
  ownAddresses: () => readonly string[] = addressesOfInterfaces
): EgressGuard {
  // Of https: whatever else listens on a public address gives no tokens, unless an operator says so.
  const open = new Set([443, ...ports])
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

  function mayReach(address: string, port: number): boolean {
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (allowed.check(address, family)) return true
    if (!open.has(port)) return false
    if (special.check(address, family) || (family === 'ipv6' && !globalUnicast.check(address, family))) return false
    const own = new BlockList()
    for (const each of ownAddresses()) own.addAddress(each, isIPv4(each) ? 'ipv4' : 'ipv6')
    return !own.check(address, family)
  }

  const refusal = (host: string, address: string, port: number): EgressRefused =>
    new EgressRefused(
      `${host === address ? address : `${host} (${address})`} is no public address, or one of this machine, or is ` +
        `reached at another port (${port}) than 443, and nobody who runs this gateway wrote this URL. If it is ` +
        'meant, list its range under egress.allow, or the port under egress.ports; a host that a tenant-admin wrote ' +
        'also by its own name under admin.allowedHosts.'
    )

  return {
    check({ hostname, port, protocol }) {
      const host = hostname.replace(/^\[(.*)\]$/, '$1')
      const at = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
      if (isIP(host) !== 0 && !mayReach(host, at)) throw refusal(host, host, at)
    },
    lookup: (port, owner) => (hostname, options, callback) => {
      resolve(hostname, owner).then(
        (found) => {
          const good = found.filter(({ address }) => mayReach(address, port))
          const [first] = good
          if (first === undefined) callback(refusal(hostname, found[0]?.address ?? 'no address', port), [])
          else if (options.all === true) callback(null, good)
          else callback(null, first.address, first.family)
        },
        (error: Error) => callback(error, [])
      )
    }
  }
}

function addressesOfInterfaces(): string[] {
  try {
    return Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  } catch {
    // Where a sandbox lets nobody ask, they are not known; ports and private ranges are refused all the same.
    return []
  }
}
