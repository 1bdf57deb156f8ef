// Cookies of the pages of connections: of one tenant, read by no script. Behind TLS their prefix holds browsers to
// Secure, Path=/ and no Domain (RFC 6265bis section 4.1.3.2). They come along when the browser is sent back from a
// provider, and with no form of others.

/** @param kind what its name begins with */
export function pageCookie(kind: string) {
  const nameOf = (tenant: string, secure: boolean): string => `${secure ? '__Host-' : ''}gatehouse-${kind}-${tenant}`
  return {
    /** @param cookies the header */
    in(tenant: string, cookies: string | undefined, secure: boolean): string | undefined {
      const start = `${nameOf(tenant, secure)}=`
      return cookies
        ?.split(/; */)
        .find((each) => each.startsWith(start))
        ?.slice(start.length)
    },
    /** @returns the `Set-Cookie`; `seconds` 0 takes it away */
    line(tenant: string, value: string, seconds: number, secure: boolean): string {
      const attributes = `Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
      return `${nameOf(tenant, secure)}=${value}; ${attributes}`
    }
  }
}
