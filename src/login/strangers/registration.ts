// What hosts say of themselves, when they register (RFC 7591) or in a metadata document, as far as it is taken
// otherwise than they say it, or not at all.

import { randomBytes } from 'node:crypto'
import type { Configuration, errors as Errors, KoaContextWithOIDC } from 'oidc-provider'
import { isLocal } from '../../config/formats.ts'

/**
 * The `client_id` of a host. The library asks for it before it looks at the metadata.
 *
 * A host registers scopes before it knows which it needs: the MCP Inspector an empty text, others `openid profile
 * email`. The library would refuse what it does not have, and later whatever was not registered. So none are
 * registered: which scopes a token gets is asked of the person, and limited by the endpoint (RFC 7591 section 2: where
 * there is no `scope`, the server registers a default set).
 */
export function registeredId(ctx: KoaContextWithOIDC): string {
  // Nothing here reads keys of clients, so that no address of them is kept either.
  for (const name of ['scope', 'jwks', 'jwks_uri']) delete ctx.oidc.body?.[name]
  return randomBytes(16).toString('base64url')
}

/** The longest name of a client, in characters. */
const maxClientName = 100

/**
 * What a client calls itself, without what is not seen or turns other text around (U+202E and the like), on one line.
 * @param id where nothing of it is left
 */
export function shownClient(name: unknown, id: string): string {
  const text = typeof name === 'string' ? name : ''
  // U+2800 is a letter of Braille without a dot.
  const seen = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu, '')
    .trim()
  return Array.from(seen === '' ? id : seen)
    .slice(0, maxClientName)
    .join('')
}

/**
 * Where answers may go: https; http of the person's own machine; and the scheme of an app (RFC 8252 section 7.1),
 * such as `cursor:` or `com.example.app:`. The library lets clients of the web have http anywhere, and apps any scheme.
 * @returns why this one may not be; undefined: it may
 */
function refusedRedirect(uri: unknown, isOfWeb: boolean): string | undefined {
  const { protocol, hostname = '', href = '' } = URL.parse(String(uri)) ?? {}
  if (typeof uri !== 'string' || protocol === undefined) return 'redirect_uris must be valid URIs'
  if (href.includes('#')) return 'redirect_uris must have no fragment'
  if (protocol === 'https:')
    return !isOfWeb && ofApps.has(hostname) ? 'redirect_uris of the own machine are those with http' : undefined
  if (protocol === 'http:') {
    if (!staysHere(uri)) return 'redirect_uris with http are those of the own machine only; use https'
    return !isOfWeb && isOtherLoopback(uri) ? 'redirect_uris of an app have localhost or 127.0.0.1 there' : undefined
  }
  const scheme = protocol.slice(0, -1)
  if (notOfApps.has(scheme) || /^(?:ms|x-apple)-|-(?:extension|untrusted|devtools)$/.test(scheme))
    return `redirect_uris must not use the scheme ${scheme}, which is of no single app`
  return isOfWeb ? `redirect_uris of a client with application_type web must not use the scheme ${scheme}` : undefined
}

/** Hosts that the library takes of an app with http, with any port; of a client of the web it takes every host. */
const ofApps: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether the URI names the person's own machine by another name, such as http://app.localhost. */
const isOtherLoopback = (uri: unknown): boolean =>
  staysHere(String(uri)) && !ofApps.has(URL.parse(String(uri))?.hostname ?? '')

/**
 * Of what registers, of metadata documents, and of clients that registered before: an address that may not be used is
 * left out, and the client has the others (RFC 7591 section 3.2.1). One that has no other is refused.
 */
export const withCheckedRedirects = (errors: typeof Errors): NonNullable<Configuration['extraClientMetadata']> => ({
  properties: ['redirect_uris'],
  validator(_ctx, _name, uris, metadata) {
    if (!Array.isArray(uris) || uris.length === 0) return
    const all = uris as unknown[]
    if (all.some(isOtherLoopback) && all.every((uri) => /^https?:/i.test(String(uri))))
      metadata['application_type'] = 'web'
    const isOfWeb = metadata['application_type'] === 'web'
    const usable = all.filter((uri): uri is string => refusedRedirect(uri, isOfWeb) === undefined)
    if (usable.length === 0)
      throw new errors.InvalidClientMetadata(refusedRedirect(all[0], isOfWeb) ?? 'redirect_uris must not be empty')
    metadata['redirect_uris'] = usable
  }
})

/** An answer there stays on the machine of the person. */
export function staysHere(redirectUri: string): boolean {
  const { protocol, hostname = '' } = URL.parse(redirectUri) ?? {}
  return protocol === 'http:' && isLocal(hostname)
}

/** Schemes that lead to a server elsewhere, into the browser itself, or to a program that does what they say. */
const notOfApps: ReadonlySet<string> = new Set(
  (
    'ftp ftps sftp tftp fish ssh scp telnet tn3270 rlogin ws wss smb smbs cifs nfs afp afs dav davs webdav webdavs ' +
    'gopher ldap ldaps ldapi rtsp rtsps rtspu rtmp rtmps rtp srt mms mmsh mmst icap rsync svn git cvs imap imaps pop ' +
    'pop3 pop3s smtp smtps submission nntp snntp news irc ircs irc6 xmpp sip sips stun stuns turn turns coap coaps ' +
    'mqtt mqtts amqp amqps redis rediss mongodb mysql postgres postgresql jdbc dns vnc rdp spice wais prospero iax ' +
    'h323 finger whois dict ipp ipps ipfs ipns magnet ed2k udp tcp unix soap.beep xmlrpc.beep z39.50r z39.50s ' +
    'mailto tel sms mms2 smsto callto facetime facetime-audio geo maps market itms itms-apps itms-appss ' +
    'itms-services webcal webcals feed cid mid urn tag info doi message addressbook help shell search search-ms ' +
    'microsoft-edge onenote res mk mhtml hcp applescript shortcuts workflow intent android-app package ' +
    'data javascript vbscript livescript about blob file filesystem jar view-source chrome chrome-search edge brave ' +
    'opera vivaldi resource moz-icon wyciwyg content devtools http+unix acct ni nih pkcs11 oid bluetooth'
  ).split(' ')
)
