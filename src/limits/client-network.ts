// What counts as one where clients are counted by where they come from.

import { isIPv6 } from 'node:net'

/** An IPv4 address is itself, also where a socket of IPv6 has it (`::ffff:10.0.0.1`, RFC 4291 section 2.5.5.2). */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Below them stand loopback, addresses of IPv4 (RFC 4291 section 2.5.5) and their translations (RFC 6052). */
const shared: ReadonlySet<string> = new Set(['0:0:0:0', '64:ff9b:0:0'])

/**
 * One subscriber has at least a /64 of IPv6, and as many addresses as they like (RFC 6177).
 * @returns of an address of IPv6 its /64, of others the address
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address)
  if (!isIPv6(plain)) return plain
  const canonical = new URL(`http://[${plain.replace(/%.*/, '')}]`).hostname.slice(1, -1)
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  const prefix = [...before, ...zeros, ...after].slice(0, 4).join(':')
  return shared.has(prefix) ? canonical : `${prefix}::/64`
}
