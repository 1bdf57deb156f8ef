// Is a URI written plainly, or may a server take it for another one than it seems to name?

/**
 * Is it written in the one way that patterns are compared with? A server takes `a/../secret`, `%73ecret` or
 * `file://localhost/secret` for the secret, too (RFC 3986 section 6.2.2).
 */
export function isPlainUri(uri: string): boolean {
  const [, authorityAndPath = uri] = /^[^:/?#]*:\/\/([^?#]*)/.exec(uri) ?? []
  const segments = authorityAndPath.split('/')
  return (
    !/[\\\p{Cc} ]/u.test(uri) &&
    !/^[^:/?#]*[A-Z][^:/?#]*:/.test(uri) &&
    !/^file:(?!\/\/\/)/.test(uri) &&
    !segments.some((segment) => segment === '.' || segment === '..') &&
    !segments.slice(1, -1).includes('') &&
    !hasNeedlessEscape(uri)
  )
}

/** `%` before characters that mean the same without it, that delimit, or that decode twice. */
const hasNeedlessEscape = (uri: string): boolean =>
  /%(?![0-9A-Fa-f]{2})/.test(uri) ||
  [...uri.matchAll(/%(..)/g)].some(([, hex = '']) => /[\w.~\-/\\%\p{Cc}]/u.test(String.fromCharCode(parseInt(hex, 16))))
