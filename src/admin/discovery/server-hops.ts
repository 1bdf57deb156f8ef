// The way of the gateway to an MCP server that is not configured yet, hop by hop, as calls would go it later: within
// the same guard, over the same transports, and with what the definition shows the server.

import { createEgressGuard, type EgressLimits } from '../../egress/guard.ts'
import { type Guarded, portOf } from '../../egress/sockets.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import { Diagnosis, catalogue } from '../../hosts/doctor/catalogue.ts'
import { addressesOf, ConnectionFault, diagnosisOf, sender, type SendOnce } from '../../hosts/doctor/exchange.ts'
import type { MemoryShare } from '../../limits/memory.ts'
import { cellText } from '../../observe/text-log.ts'
import { GatewayError, type Implementation, latestModern, requestMessage, RpcError } from '../../protocol/messages.ts'
import { noClient } from '../../protocol/seams.ts'
import type { Connector } from '../../upstream/connect/connect.ts'
import { fetchListing, type Listing } from '../../upstream/listing/listing.ts'
import { discoverRequest } from '../../upstream/modern/discover.ts'
import { hopMs, signInHops } from './sign-in-hops.ts'
import { Stopped, type Passed } from './stopped.ts'

export interface Discovery {
  readonly definition: HttpDefinition
  readonly egress: EgressLimits
  readonly publicUrl: string
  readonly clientInfo: Implementation
  readonly connect: Connector['connect']
  /** The memory that the lists count to. */
  readonly memory: MemoryShare
  readonly signal: AbortSignal
  readonly passed: Passed
}

/** The result. Without a listing the server asks people to sign in, or shows lists by caller. */
interface Found {
  readonly listing: Listing | undefined
  readonly asksPeople: boolean
}

/** @throws Stopped at the first hop that fails */
export async function discoverServer(discovery: Discovery): Promise<Found> {
  const { definition, passed } = discovery
  const url = new URL(definition.url)
  const guarded = await reachable(discovery, url)
  const { status, challenge } = await firstAnswer(discovery, url, guarded)
  passed('tls', url.protocol === 'https:' ? 'the certificate is good' : 'connected, without TLS')
  const { auth } = definition
  // A credential of a caller is not available here, so the server is examined without one.
  if (auth !== undefined && auth.type !== 'clientCredentials' && auth.type !== 'user')
    return { listing: undefined, asksPeople: false }
  if (status === 401 && auth?.type !== 'clientCredentials') {
    await signInHops({ ...discovery, challenge })
    return { listing: undefined, asksPeople: true }
  }
  if (auth?.type === 'clientCredentials' && isForWhomeverItNames(auth))
    throw new Stopped(
      'issuer_not_named',
      'discovery',
      'The secret of the client is shown to no authorization server that the configuration does not name.',
      'Name it: issuer, or tokenUrl, beside clientId.'
    )
  if (auth?.type !== 'clientCredentials') passed('challenge', `none: HTTP ${status}`)
  const { auth: _auth, ...open } = definition
  // For a server where people connect accounts, the lists are read without an account.
  const listing = await listed(auth?.type === 'user' ? { ...discovery, definition: open } : discovery)
  return { listing, asksPeople: false }
}

const isForWhomeverItNames = ({
  issuer,
  tokenUrl
}: {
  readonly issuer?: string
  readonly tokenUrl?: string
}): boolean => issuer === undefined && tokenUrl === undefined

/** Looks up the host. @returns the guard of its sockets, where it has to be public */
async function reachable(
  { definition: { publicHosts, tenant }, egress, passed }: Discovery,
  url: URL
): Promise<Guarded | undefined> {
  try {
    if (publicHosts?.includes(url.hostname) !== true) {
      passed('dns', `${url.hostname} is ${(await addressesOf(url)).join(', ')}`)
      return undefined
    }
    const guard = createEgressGuard(egress)
    guard.check(url)
    await new Promise<void>((resolve, reject) => {
      guard.lookup(portOf(url), tenant)(url.hostname, { all: true }, (error) =>
        error === null ? resolve() : reject(error)
      )
    })
    passed('dns', `${url.hostname} is found, and public`)
    return { guard, owner: tenant }
  } catch (error) {
    throw await stoppedBy(error, url, undefined)
  }
}

/** A request that changes nothing there: it opens no session. */
async function firstAnswer(
  { definition, clientInfo }: Discovery,
  url: URL,
  guarded: Guarded | undefined
): Promise<{ readonly status: number; readonly challenge: string | undefined }> {
  try {
    const { status, headers } = await sender({ ca: undefined, timeoutMs: hopMs })(url, {
      method: 'POST',
      body: JSON.stringify(requestMessage(0, discoverRequest(latestModern, clientInfo))),
      headers: {
        ...definition.headers,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': latestModern,
        'Mcp-Method': 'server/discover'
      },
      head: 'of any',
      guarded
    })
    return { status, challenge: headers['www-authenticate'] }
  } catch (error) {
    throw await stoppedBy(error, url, guarded)
  }
}

/** The faults of the way to a gateway, of which those of its own side are those of the server here. */
const remedies: Readonly<Record<string, string>> = {
  connection_refused: 'Is the server running, and is the port of the URL right?',
  no_answer: 'Something else listens there, or a firewall between the gateway and the server swallows what is sent.',
  tls_expired: 'Whoever runs the server renews it.',
  tls_wrong_name: 'Use the name of the certificate in the URL.',
  tls_unknown_ca: 'If it is of your own authority, give that to the gateway: NODE_EXTRA_CA_CERTS.'
}

async function stoppedBy(error: unknown, url: URL, guarded: Guarded | undefined): Promise<unknown> {
  const cause = error instanceof ConnectionFault ? error.cause : error
  if ((cause as NodeJS.ErrnoException | undefined)?.code === 'EGRESS_REFUSED')
    return new Stopped(
      'not_public',
      'dns',
      `${url.hostname} leads to no public address, or to another port than 443, and a tenant-admin may name no other.`,
      'If it is meant, a platform-admin lists its range under egress.allow, or its name under admin.allowedHosts.'
    )
  const way = { ca: undefined, timeoutMs: hopMs }
  const send: SendOnce = (to, wanted) => sender(way)(to, { ...wanted, guarded })
  const told = error instanceof ConnectionFault ? await diagnosisOf(error, url, way, send) : unknownName(error, url)
  if (!(told instanceof Diagnosis)) return told
  const { code, message, remedy } = told
  return new Stopped(code, catalogue[code].hop, message, remedies[code] ?? remedy)
}

const unknownName = (error: unknown, { hostname }: URL): unknown =>
  error instanceof Diagnosis || typeof (error as NodeJS.ErrnoException).code !== 'string'
    ? error
    : new Diagnosis('dns_unknown', { hostname, code: (error as NodeJS.ErrnoException).code ?? '' })

/** Connects as calls do, reads the lists, and closes the connection. */
async function listed({ definition, clientInfo, connect, memory, signal, passed }: Discovery): Promise<Listing> {
  const events = { listChanged() {}, notification() {}, ask: noClient.ask, closed() {} }
  const handshake = { clientInfo, capabilities: {}, era: 'modern' as const }
  const upstream = await connect(definition, handshake, events, signal, 'listing').catch((error: unknown) => {
    throw refused(error, 'initialize')
  })
  try {
    const { era, revision, serverInfo } = upstream
    const software = [serverInfo.name, serverInfo.version].map(cellText).join(' ')
    passed(era === 'modern' ? 'discover' : 'initialize', `${software}, in revision ${revision}`)
    const listing = await fetchListing(upstream, signal, undefined, memory).catch((error: unknown) => {
      throw refused(error, 'list')
    })
    const { tools, prompts, resources, templates, partial } = listing
    const counts = Object.entries({ tools, prompts, resources, templates }).map(
      ([kind, { length }]) => `${length} ${kind === 'templates' ? 'resource templates' : kind}`
    )
    passed('list', [...counts, ...partial.slice(0, 5)].join(', '))
    return listing
  } finally {
    void upstream.close()
  }
}

function refused(error: unknown, hop: 'initialize' | 'list'): unknown {
  if (error instanceof RpcError)
    return new Stopped('rpc_error', hop, `It answers with an error: ${error.message}`, 'Its own log may say why.')
  if (!(error instanceof GatewayError)) return error
  const isRefusal = error.data['status'] === 401 || error.data['status'] === 403
  return new Stopped(
    error.code,
    hop,
    error.message,
    isRefusal ? 'Correct what the server is shown: headers, or auth.' : 'Is it the URL of an MCP server?'
  )
}
