// The one place where the gateway opens a connection to anybody: to upstreams, identity providers, authorization
// servers, key services and collectors. Where nobody who runs it wrote the URL, the guard judges the address that is
// connected to.

import { connect as connectTcp, isIP, type OnReadOpts, Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { EgressGuard } from './guard.ts'

/** The guard that judges where a connection may lead, and the owner of the name. */
export interface Guarded {
  readonly guard: EgressGuard
  readonly owner: string
}

interface SocketOptions {
  /** The guard of the URL. Default: none, because an operator wrote the URL. */
  readonly guarded?: Guarded | undefined
  /** Reads without a stream in between. */
  readonly onread?: OnReadOpts
  /** The session of an earlier connection over TLS. */
  readonly session?: Buffer | undefined
  /** PEM of authorities that are trusted besides those of Node. */
  readonly ca?: string | undefined
}

/** The time without traffic after which the system asks whether the other side is still there. */
const probeMs = 60_000

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }
const tlsProtocols: ReadonlySet<string> = new Set(['https:', 'tls:'])

export const portOf = ({ port, protocol }: { readonly port: string; readonly protocol: string }): number =>
  port === '' ? (usualPorts[protocol] ?? 0) : Number(port)

/** The event of a socket to this URL after which the other side can be written to, TLS included. */
export const openedEvent = ({ protocol }: URL): 'connect' | 'secureConnect' =>
  tlsProtocols.has(protocol) ? 'secureConnect' : 'connect'

/**
 * @param url `http:`, `https:` (offers HTTP/1.1 alone), `tcp:`, `tls:`, or `unix:` with a path
 * @returns a socket that is being connected. It fails with EgressRefused for where it may not lead
 */
export function openSocket(url: URL, options: SocketOptions = {}): Socket {
  const socket = connecting(url, options).setNoDelay(true).setKeepAlive(true, probeMs)
  const { guarded } = options
  // The first to hear of it, ahead of TLS, which says hello: nothing was sent yet.
  if (guarded !== undefined) socket.prependOnceListener('connect', () => judgeWhereItLed(socket, url, guarded))
  return socket
}

/** Once more, by the address itself, whatever became of the name on the way. */
function judgeWhereItLed(socket: Socket, { protocol }: URL, { guard }: Guarded): void {
  const { remoteAddress = '', remotePort = '', remoteFamily } = socket
  try {
    guard.check(new URL(`${protocol}//${remoteFamily === 'IPv6' ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`))
  } catch (error) {
    socket.destroy(error as Error)
  }
}

function connecting(url: URL, { guarded, onread, session, ca }: SocketOptions): Socket {
  if (url.protocol === 'unix:') return connectTcp(url.pathname)
  try {
    // Names are judged by their addresses; of what is an address itself none is looked up.
    guarded?.guard.check(url)
  } catch (error) {
    return new Socket().destroy(error as Error)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = portOf(url)
  const lookup = guarded?.guard.lookup(port, guarded.owner)
  const to = { host, port, ...(onread && { onread }), ...(lookup && { lookup }) }
  if (!tlsProtocols.has(url.protocol)) return connectTcp(to)
  return connectTls({
    ...to,
    // RFC 6066 section 3: an address is no server name; the certificate is compared with it all the same.
    ...(isIP(host) === 0 && { servername: host }),
    ...(session && { session }),
    ...(ca !== undefined && { ca }),
    ...(url.protocol === 'https:' && { ALPNProtocols: ['http/1.1'] })
  })
}
