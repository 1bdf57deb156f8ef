// Networks in CIDR notation (RFC 4632, RFC 4291 section 2.3), and the address of a client behind proxies.

import { BlockList, isIP } from 'node:net'
import { plainAddress } from '../../limits/client-network.ts'

export type Networks = (address: string) => boolean

/** @returns undefined where one is neither a network such as 10.0.0.0/8 nor a single address */
export function networksOf(texts: readonly string[]): Networks | undefined {
  const list = new BlockList()
  for (const text of texts) {
    const [address = '', prefix, ...more] = text.split('/')
    const version = isIP(address)
    const bits = version === 4 ? 32 : 128
    const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity
    if (version === 0 || more.length > 0 || length > bits) return undefined
    list.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) => {
    const plain = plainAddress(address)
    const version = isIP(plain)
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * Returns the address of the client behind trusted proxies: the last one in `X-Forwarded-For` that is no trusted proxy.
 * Each proxy appends the address of its peer; earlier entries are the client's own and may be forged.
 * @param peer the address of the connection
 * @returns undefined if a trusted proxy has sent no readable address
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  isTrusted: Networks
): string | undefined {
  let client = peer === undefined ? undefined : plainAddress(peer)
  const hops = forwardedFor?.split(',') ?? []
  while (client !== undefined && isTrusted(client)) {
    const hop = hops.pop()?.trim()
    if (hop === undefined) return undefined
    // With a port as some proxies write it.
    const [, bracketed, v4] = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(hop) ?? []
    const address = plainAddress(bracketed ?? v4 ?? hop)
    client = isIP(address) === 0 ? undefined : address
  }
  return client
}
