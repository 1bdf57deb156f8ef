// What one misconfiguration is: at which hop it shows, who has to act, and what they do.

/** The names of the hops, in the order in which a host comes to them. */
export const hopNames = {
  url: 'URL',
  dns: 'DNS',
  tls: 'connection and TLS',
  host: 'Host and Origin',
  challenge: 'the 401',
  metadata: 'resource metadata',
  discovery: 'discovery of the login',
  registration: 'registration',
  authorization: 'authorization',
  token: 'token',
  credential: 'credential',
  initialize: 'initialize',
  discover: 'server/discover',
  list: 'list',
  ping: 'ping, stream and end'
} as const

export type HopName = keyof typeof hopNames

export type Side = 'host' | 'network' | 'proxy' | 'gateway' | 'identity provider'

export interface Misconfiguration {
  readonly hop: HopName
  /** The side that has to act. */
  readonly side: Side
  readonly problem: string
  readonly remedy: string
}

export const at =
  (hop: HopName) =>
  (side: Side, problem: string, remedy: string): Misconfiguration => ({ hop, side, problem, remedy })
