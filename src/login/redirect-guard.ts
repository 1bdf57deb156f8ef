// The redirect guard holds back what the library would answer to a browser: a redirect to an address that nobody has
// looked at yet, which would make an open redirector of the tenant's origin, and a page of its own with a script.

import type { errors as Errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import { escaped, type Page, pageText, securityHeaders } from './pages.ts'
import type { LoginRecords } from './records.ts'
import { staysHere } from './strangers/registration.ts'

/** How long an address counts as allowed after a person allowed it, in milliseconds. */
const allowedMs = 365 * 24 * 60 * 60_000

export function guardRedirects(provider: Provider, config: LoginConfig, records: LoginRecords): void {
  const failed = new WeakMap<KoaContextWithOIDC, Errors.OIDCProviderError>()
  const succeeded = new WeakSet<KoaContextWithOIDC>()
  provider.on('authorization.error', (ctx, error) => void failed.set(ctx, error))
  provider.on('authorization.success', (ctx) => void succeeded.add(ctx))

  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    await next()
    const { oidc } = ctx
    const isAuthorization = oidc?.route === 'authorization' || oidc?.route === 'resume'
    // What login.ts makes of the others; merged with those of the library where it is configured.
    if (oidc?.route === 'discovery') Object.assign(ctx.body ?? {}, { response_modes_supported: ['query'] })
    if (!isAuthorization && oidc?.route !== 'end_session') return
    const interaction = (oidc.entities.Interaction ?? {}) as KeptInteraction
    const secret = oidc.session?.state?.['secret']
    const location = ctx.res.getHeader('location')
    // Its form that sends itself: ours have a policy by now.
    if (location === undefined && ctx.response.is('html') === 'html' && !ctx.res.hasHeader('content-security-policy'))
      return show(ctx, config, otherPerson(config, String(secret)), formTargets(interaction.params?.['redirect_uri']))
    if (!isAuthorization) return
    const redirectUri = String(oidc.params?.['redirect_uri'])
    const id = JSON.stringify([oidc.params?.['client_id'], redirectUri])
    if (succeeded.has(ctx)) {
      // It went well: without the record the person sees a page the next time something fails.
      if (!staysHere(redirectUri)) await records.write('AllowedRedirect', id, true, allowedMs).catch(() => undefined)
      return
    }
    const error = failed.get(ctx)
    if (error === undefined || typeof location !== 'string' || staysHere(redirectUri)) return
    // RFC 9700 section 4.11.2: a person has seen where the answer goes, now or before.
    if (interaction.result?.answered === true || (await records.read('AllowedRedirect', id)) === true) return
    ctx.remove('location')
    ctx.status = 400
    show(ctx, config, unknownAddress(config, error, location))
  })
}

interface KeptInteraction {
  readonly params?: Readonly<Record<string, unknown>>
  /** The result, with the members that interactions.ts adds. */
  readonly result?: { readonly answered?: boolean }
}

function show(ctx: KoaContextWithOIDC, { logo }: LoginConfig, page: Page, targets?: readonly string[]): void {
  ctx.set(securityHeaders(targets, logo))
  ctx.type = 'html'
  ctx.body = pageText(page)
}

/** Browsers hold the redirects that follow a form against these. */
export function formTargets(redirectUri: unknown): string[] {
  const url = URL.parse(String(redirectUri))
  if (url === null) return []
  return [url.protocol === 'https:' || url.protocol === 'http:' ? url.origin : url.protocol]
}

/** The session that the browser has is another person's, or nobody's: it ends before the next one. */
function otherPerson({ name, logo, path }: LoginConfig, secret: string): Page {
  const body = `<p>The session that this browser had here ends.</p>
<form method="post" action="${escaped(path)}/session/end/confirm">
<input type="hidden" name="xsrf" value="${escaped(secret)}"><input type="hidden" name="logout" value="yes">
<button class="primary">Go on</button></form>`
  return { name, logo, title: 'Go on?', body }
}

function unknownAddress({ name, logo }: LoginConfig, error: Errors.OIDCProviderError, location: string): Page {
  const { protocol, host, href } = new URL(location)
  const target = protocol === 'https:' ? host : (href.split('?', 1)[0] ?? '')
  const body = `<p>${escaped((error.error_description ?? error.error).replace(/\.$/, ''))}.</p>
<p class="note">This app is not known here with this address, so you are not sent to it by itself. Go on
only if you have just started this yourself.</p>
<p><a href="${escaped(href)}" rel="noreferrer">Tell the app at <bdi>${escaped(target)}</bdi></a></p>`
  return { name, logo, title: 'This sign-in cannot go on', body }
}
