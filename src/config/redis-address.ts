// The addresses of Redis: one server, a primary that Sentinels know, a cluster. Parsed here and not by the client
// library, whose settings a query string could override.

export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly tls: boolean
  /** The addresses of the server, of Sentinels, or of some nodes of the cluster, which name the others. */
  readonly nodes: ReadonlyArray<{ readonly host: string; readonly port: number }>
  readonly username: string | undefined
  readonly password: string | undefined
  /** The name of the primary at the Sentinels; empty elsewhere. */
  readonly name: string
  readonly database: number
  /** The user name for the Sentinels themselves, where they ask for one. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

export const redisAddressForms =
  'redis://[user:password@]host[:port][/database], ' +
  'redis+sentinel://[user:password@]host[:port],host[:port]/name[/database] ' +
  'or redis+cluster://[user:password@]host[:port],host[:port], with rediss for TLS'

const kinds = { '': 'single', '+sentinel': 'sentinel', '+cluster': 'cluster' } as const
const addressPattern = /^redis(s?)(|\+sentinel|\+cluster):\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/

/** @returns undefined where it is none */
export function redisAddress(text: string): RedisAddress | undefined {
  const [, tls, suffix, authority = '', path = '', query = ''] = addressPattern.exec(text) ?? []
  if (suffix === undefined) return undefined
  const kind = kinds[suffix as keyof typeof kinds]
  const at = authority.lastIndexOf('@')
  const [username = '', ...password] = authority.slice(0, Math.max(0, at)).split(':')
  const nodes = authority
    .slice(at + 1)
    .split(',')
    .map((node) => nodeOf(node, kind === 'sentinel' ? 26_379 : 6_379))
  const [name, database] = kind === 'sentinel' ? splitAt(path, '/') : ['', path]
  const others = new URLSearchParams(query)
  const [sentinelUsername, sentinelPassword] = ['sentinelUsername', 'sentinelPassword'].map((key) => others.get(key))
  if (
    nodes.includes(undefined) ||
    (kind === 'single' && nodes.length > 1) ||
    (kind === 'sentinel') === (name === '') ||
    !/^\d*$/.test(database) ||
    (kind === 'cluster' && Number(database) !== 0) ||
    [...others.keys()].some((key) => kind !== 'sentinel' || !/^sentinel(?:Username|Password)$/.test(key))
  )
    return undefined
  try {
    const [user, word] = [username, password.join(':')].map(decodeURIComponent)
    return {
      kind,
      tls: tls === 's',
      nodes: nodes.filter((node) => node !== undefined),
      username: user || undefined,
      password: word || undefined,
      name: decodeURIComponent(name),
      database: Number(database),
      sentinelUsername: sentinelUsername || undefined,
      sentinelPassword: sentinelPassword || undefined
    }
  } catch {
    return undefined // A % that is not followed by two hex digits.
  }
}

/** Whether what stands between the two texts of an address is a name or a password, or part of one. */
export const isCredential = (before: string, after: string): boolean =>
  (/^rediss?(?:\+sentinel|\+cluster)?:\/\/[^/?#@]*$/.test(before) && /^[^/?#]*@/.test(after)) ||
  /^redis[^?#]*\?(?:[^#]*&)?sentinel(?:Username|Password)=[^&#]*$/.test(before)

function nodeOf(text: string, usualPort: number): RedisAddress['nodes'][number] | undefined {
  // As a URL, for ports that are too large and IPv6 in brackets.
  const url = /[@\\]/.test(text) ? null : URL.parse(`redis://${text}`)
  if (url === null || url.hostname === '' || url.pathname !== '') return undefined
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? usualPort : Number(url.port) }
}

function splitAt(text: string, separator: string): readonly [string, string] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
