// Goes the way of a host to an endpoint, hop by hop, and says at the first one that fails what is wrong, who has to
// act, and what they do.

import { cellText } from '../../observe/text-log.ts'
import { Diagnosis } from './catalogue.ts'
import { judgeCredential, type Announced } from './credential.ts'
import type { ExaminedEndpoint } from './answers.ts'
import {
  judgeFirstAnswer,
  discover,
  judgeInitialize,
  openSseStream,
  postInitialize,
  trySession
} from './endpoint-hops.ts'
import { addressesOf, ConnectionFault, notAsked, sender, type SendOnce, type Wanted } from './exchange.ts'
import type { HopName } from './misconfiguration.ts'
import { deviceGrant, logInByDevice, withDeviceLogin } from './device-login.ts'
import {
  discoverLogin,
  logIn,
  metadataUrlIn,
  openCallback,
  readMetadata,
  registerClient,
  type LoginServer
} from './login-hops.ts'

export interface DoctorOptions {
  readonly url: string
  readonly token?: string | undefined
  /** The way to sign in; undefined: nobody does. */
  readonly login?: 'browser' | 'device' | undefined
  readonly clientId?: string | undefined
  readonly origin?: string | undefined
  readonly ca?: string | undefined
  readonly timeoutMs: number
  readonly version: string
}

export interface Surroundings {
  /** A hop is done. */
  passed(hop: HopName, text: string): void
  /** Opens a page before a person. @param userCode that they enter there, in a browser of any device */
  browse(url: string, userCode?: string): void
  /** Whether a URL may be asked. Default: any. */
  mayAsk?(url: URL): boolean
  /** Returns the guard of a URL. Default: none; names are looked up by the system. */
  guardedFor?(url: URL): Wanted['guarded']
  /** The time that the person has, in milliseconds. */
  readonly waitMs: number
}

/** The path at which hosts begin that know only HTTP+SSE. */
const ofSse = /\/sse(?=\/?$)/

/** @throws Diagnosis at the first hop that fails. @returns what was not tried, and why; '' where all was */
export async function examine(options: DoctorOptions, surroundings: Surroundings): Promise<string> {
  const { passed } = surroundings
  const given = URL.parse(options.url)
  if (given === null || !/^https?:$/.test(given.protocol)) throw new Diagnosis('url_invalid', { url: options.url })
  const url = new URL(given)
  url.pathname = given.pathname.replace(ofSse, '/mcp')
  if (url.href !== given.href) passed('url', `an address of HTTP+SSE: ${url.href} is tried, which has the same login`)
  const way = { ca: options.ca, timeoutMs: options.timeoutMs }
  const send = onlyTo(surroundings, sender(way))
  const endpoint: ExaminedEndpoint = { url, origin: options.origin, send, way, version: options.version }
  const sse = url.href === given.href ? undefined : { ...endpoint, url: given }
  passed('dns', `${url.hostname} is ${(await addressesOf(url)).join(', ')}`)

  const first = await postInitialize(endpoint)
  passed('tls', url.protocol === 'https:' ? 'the certificate is good' : 'connected, without TLS')
  judgeFirstAnswer(endpoint, first)
  passed('host', `the gateway answers as ${url.host}${options.origin === undefined ? '' : ` to ${options.origin}`}`)
  if (first.status !== 401) {
    judgeInitialize(endpoint, first)
    passed('challenge', 'none: the endpoint lets everybody in')
    return await useEndpoint(endpoint, { sse }, surroundings)
  }
  if (first.headers['www-authenticate'] === undefined) throw new Diagnosis('challenge_missing')
  const metadataUrl = metadataUrlIn(first)
  const { token } = options
  if (metadataUrl === undefined && token === undefined) throw new Diagnosis('key_needed')
  passed('challenge', metadataUrl === undefined ? 'asks for an API key' : `leads to ${metadataUrl}`)
  if (metadataUrl === undefined) return await useEndpoint(endpoint, { token, sse }, surroundings)

  const announced = await readMetadata(endpoint, metadataUrl)
  passed('metadata', `the login is at ${announced.issuers.join(', ')}`)
  if (token !== undefined) return await useEndpoint(endpoint, { token, announced, sse }, surroundings)
  const [issuer = '', ...others] = announced.issuers
  const server = await discoverLogin(send, issuer, options.clientId !== undefined)
  passed('discovery', `${server.authorize.origin}${server.authorize.pathname}`)
  // Nothing fails for it: hosts take the first one, and another may be for tokens that nobody signs in for.
  for (const other of others)
    await discoverLogin(send, other, options.clientId !== undefined).then(
      () => passed('discovery', `${other} is well, too`),
      (error: unknown) => {
        if (!(error instanceof Diagnosis)) throw error
        passed('discovery', `${issuer} is what hosts take; nobody could sign in at ${other}: ${error.message}`)
      }
    )
  if (options.login === undefined)
    return 'Without --login, --device or --token nobody signs in: registration and all that follows was not tried.'
  if (server.register === undefined && options.clientId === undefined)
    return (
      `${issuer} registers nobody: hosts give it the address of a metadata document as their client id, which this ` +
      'command has none of. Register a client there by hand, and give it as --client-id, to try the login and all ' +
      'that follows.'
    )
  const got = await signIn(send, server, announced, options, surroundings)
  passed('authorization', 'signed in and allowed')
  passed('token', `${got.length} characters`)
  return await useEndpoint(endpoint, { token: got, announced, sse }, surroundings)
}

/** @returns the access token. @throws Diagnosis */
async function signIn(
  send: SendOnce,
  server: LoginServer,
  asked: { readonly resource: string; readonly scope: string },
  { clientId: given, login }: DoctorOptions,
  { passed, browse, waitMs }: Surroundings
): Promise<string> {
  async function clientOf(way: Parameters<typeof registerClient>[2]): Promise<string> {
    const clientId = given ?? (await registerClient(send, server, way))
    passed('registration', given === undefined ? `as ${clientId}` : `not needed: ${clientId} was given`)
    return clientId
  }
  if (login === 'device') {
    const withDevice = withDeviceLogin(server)
    return await logInByDevice(send, withDevice, await clientOf({ grant: deviceGrant }), asked, { browse, waitMs })
  }
  const callback = await openCallback()
  try {
    const { redirectUri, came } = callback
    const client = { clientId: await clientOf({ redirectUri }), redirectUri }
    return await logIn(send, server, client, asked, { browse, came, waitMs })
  } finally {
    callback.close()
  }
}

const onlyTo =
  ({ mayAsk, guardedFor }: Surroundings, send: SendOnce): SendOnce =>
  async (to, wanted) => {
    if (mayAsk?.(to) === false) throw new ConnectionFault('', notAsked)
    return await send(to, { ...wanted, guarded: guardedFor?.(to) })
  }

interface Use {
  readonly token?: string | undefined
  readonly announced?: Announced
  /** The same endpoint at the URL of its HTTP+SSE stream, if that was given. */
  readonly sse: ExaminedEndpoint | undefined
}

async function useEndpoint(
  endpoint: ExaminedEndpoint,
  { token, announced, sse }: Use,
  { passed }: Surroundings
): Promise<string> {
  const answer = await postInitialize(endpoint, token)
  judgeFirstAnswer(endpoint, answer)
  if (token !== undefined) {
    judgeCredential(token, announced, answer, Date.now())
    passed('credential', 'the gateway takes it')
  }
  const revision = cellText(judgeInitialize(endpoint, answer)['protocolVersion'])
  passed('initialize', `revision ${revision}`)
  passed('discover', `revisions ${await discover(endpoint, token)}`)
  await trySession(endpoint, answer, revision, token, passed)
  if (sse !== undefined) {
    await openSseStream(sse, token)
    passed('ping', `${sse.url.pathname} opens its stream, too`)
  }
  return ''
}
