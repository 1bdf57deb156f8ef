// Cookies of the console: no script reads them, no other site has them sent. Behind TLS their prefix holds browsers to
// Secure, Path=/ and no Domain (RFC 6265bis section 4.1.3.2); over plain HTTP, which there is on loopback only, no
// browser keeps a cookie with that prefix.

import type { FastifyRequest } from 'fastify'

const prefix = '__Host-'

export function consoleCookie(name: string) {
  const isSecure = (origin: string | undefined): boolean => origin?.startsWith('https:') === true
  const line = (origin: string | undefined, value: string, seconds: number): string => {
    const pair = isSecure(origin) ? `${prefix}${name}=${value}; Secure` : `${name}=${value}`
    return `${pair}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`
  }
  return {
    /** @param origin of the page that is answered */
    line,
    /** Returns the headers that remove the cookie, with and without its prefix. */
    gone: (origin: string | undefined): string[] => [
      line('http:', '', 0),
      ...(isSecure(origin) ? [line('https:', '', 0)] : [])
    ],
    /** @param origin where it is known: behind TLS one without the prefix may be of another host of the domain */
    in({ headers }: Pick<FastifyRequest, 'headers'>, origin?: string): string | undefined {
      const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
      for (const each of isSecure(origin) ? [prefix + name] : [prefix + name, name]) {
        const pair = pairs.find((one) => one.startsWith(`${each}=`))
        if (pair !== undefined) return pair.slice(each.length + 1)
      }
      return undefined
    }
  }
}
