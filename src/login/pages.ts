// The pages of the login front: plain HTML that works without JavaScript, in light and dark, with nothing from
// elsewhere. Whatever comes from clients, people or the configuration is escaped.

import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Consent } from './consents.ts'
import type { createIdentities } from './people/identities.ts'

const style = `
:root {
  color-scheme: light dark; --line: #c9ced6; --soft: #5b6472; --strong: #0b5cad; --on-strong: #fff;
  --back: #f4f6f8; --card: #fff; --text: #14181f; --good: #1c6b3a; --bad: #a63c0e
}
@media (prefers-color-scheme: dark) {
  :root {
    --line: #3a424d; --soft: #a3adba; --strong: #6cb2f7; --on-strong: #0b1420;
    --back: #10141a; --card: #1a2028; --text: #eef1f5; --good: #6fcf97; --bad: #f2995c
  }
}
* { box-sizing: border-box }
body {
  margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem;
  background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif
}
main {
  width: 100%; max-width: 30rem; padding: 2rem;
  background: var(--card); border: 1px solid var(--line); border-radius: .75rem
}
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3 }
.logo { display: block; max-width: 12rem; max-height: 3rem; margin: 0 0 .75rem }
.tenant { margin: 0 0 .5rem; color: var(--soft); font-size: .9rem }
dl { margin: 1.25rem 0; border-top: 1px solid var(--line) }
dl > div { padding: .6rem 0; border-bottom: 1px solid var(--line) }
dt { color: var(--soft); font-size: .85rem }
dd { margin: 0; overflow-wrap: anywhere }
dd form { margin-top: .5rem }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem }
form { margin: 0; flex: 1 1 9rem }
button {
  width: 100%; min-height: 2.75rem; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: .5rem;
  background: transparent; color: inherit; font: inherit; cursor: pointer
}
button.primary { background: var(--strong); border-color: var(--strong); color: var(--on-strong); font-weight: 600 }
input:not([type=hidden]) {
  width: 100%; min-height: 2.75rem; padding: .5rem .75rem; margin: .25rem 0 .75rem; border: 1px solid var(--line);
  border-radius: .5rem; background: var(--back); color: inherit; font: inherit
}
a { color: var(--strong) }
a.primary {
  display: block; width: 100%; padding: .65rem 1rem; border-radius: .5rem; text-align: center; text-decoration: none;
  background: var(--strong); color: var(--on-strong); font-weight: 600
}
[role=alert] { border-left: 4px solid #c4501a; padding-left: .75rem }
a:focus-visible, input:focus-visible, button:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px }
.note { color: var(--soft); font-size: .9rem }
.note strong { color: var(--text) }
.connection { margin-top: 1.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.connection h2 {
  display: flex; flex-wrap: wrap; align-items: center; gap: .6rem; margin: 0; font-size: 1.1rem; overflow-wrap: anywhere
}
.connection .actions { margin-top: 1rem; align-items: flex-start }
.state { padding: .1rem .6rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .8rem; font-weight: 500 }
.state.good { border-color: var(--good); color: var(--good) }
.state.bad { border-color: var(--bad); color: var(--bad) }
.facts { margin: .75rem 0 0; border: 0 }
.facts > div { display: grid; grid-template-columns: 6.5rem 1fr; padding: .1rem 0; border: 0 }
.facts dt { padding-top: .1rem }
.end { margin-top: 2rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
`
const styleHash = createHash('sha256').update(style).digest('base64')

export const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

interface Brand {
  /** The name of the tenant, as people know it. */
  readonly name: string
  /** URL of its picture. */
  readonly logo?: string | undefined
}

export interface Page extends Brand {
  readonly title: string
  /** HTML; not given: the title. */
  readonly heading?: string
  /** HTML */
  readonly body: string
}

export const pageText = ({ name, logo, title, heading = escaped(title), body }: Page): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
<main>
${logo === undefined ? '' : `<img class="logo" src="${escaped(logo)}" alt="" referrerpolicy="no-referrer">`}
<p class="tenant">${escaped(name)}</p>
<h1>${heading}</h1>
${body}
</main>
</html>
`

/**
 * CSP Level 3; a page in a frame could be clicked on unseen (RFC 9700 section 4.16).
 * @param formTargets where a form may lead besides this origin: browsers hold redirects against it too
 * @param logo the one picture that may be had
 */
export const securityHeaders = (
  formTargets: readonly string[] = [],
  logo?: string
): Readonly<Record<string, string>> => ({
  'content-security-policy':
    `default-src 'none'; style-src 'sha256-${styleHash}'; form-action ${["'self'", ...formTargets].join(' ')}; ` +
    (logo === undefined ? '' : `img-src ${logo.startsWith('data:') ? 'data:' : new URL(logo).href}; `) +
    "frame-ancestors 'none'; base-uri 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY'
})

export function sendPage(response: ServerResponse, status: number, page: Page, formTargets?: readonly string[]): void {
  const html = pageText(page)
  response
    .writeHead(status, {
      ...securityHeaders(formTargets, page.logo),
      'content-type': 'text/html; charset=utf-8',
      'content-length': Buffer.byteLength(html)
    })
    .end(html)
}

interface AskedConsent {
  /** The name that the client gives itself, which nobody has checked. */
  readonly client: string
  /** The host of the client's metadata document, which is proven. Not given: the client registered itself. */
  readonly site?: string | undefined
  /** Host, or scheme of an app on the person's machine, to which the answer goes. */
  readonly target: string
  readonly resource: string
  readonly scopes: readonly string[]
  readonly account: string
  /** Path under which `allow` and `deny` are. */
  readonly path: string
}

export const consentBody = ({ client, site, target, resource, scopes, account, path }: AskedConsent): string => `
<p>The app <strong><bdi>${escaped(client)}</bdi></strong> asks to use the tools of this endpoint as you.</p>
<dl>${site === undefined ? '' : `\n<div><dt>The app is of</dt><dd>${escaped(site)}</dd></div>`}
<div><dt>You</dt><dd>${escaped(account)}</dd></div>
<div><dt>Endpoint</dt><dd>${escaped(resource)}</dd></div>
<div><dt>It may</dt><dd>${escaped(scopes.join(', '))}</dd></div>
<div><dt>Your answer goes to</dt><dd>${escaped(target)}</dd></div>
</dl>
<p class="note">Anybody can give an app any name. Allow it only if you have just started this yourself.</p>
<div class="actions">
<form method="post" action="${escaped(path)}/allow"><button class="primary">Allow</button></form>
<form method="post" action="${escaped(path)}/deny"><button>Do not allow</button></form>
</div>`

export const startAgain = 'Go back to the app and start again.'

/** Says that too many requests came, to people and to those who read the answers that a host got. */
export const tooOften = (retrySeconds: number): string =>
  'Too many apps register or sign in here at the moment, from your network or in all. Try again in ' +
  `${retrySeconds > 120 ? `${Math.ceil(retrySeconds / 60)} minutes` : `${retrySeconds} seconds`}.`

/** Makes the list of the consents of a person, each with a button to withdraw it. @param path of the page */
export const consentsBody = (
  path: string,
  account: string,
  consents: readonly Consent[],
  tokenSeconds: number
): string => `
<p>You are ${escaped(account)}. These apps may use tools as you:</p>
${consents.length === 0 ? '<p>None.</p>' : `<dl>${consents.map((each) => consentRow(path, each)).join('')}</dl>`}
<p class="note">An app that you take it from is out within ${Math.ceil(tokenSeconds / 60)} minutes, and has to ask
you again.</p>
<p><a href="${escaped(path.replace(/consents$/, 'session/end'))}">Sign out</a></p>`

const consentRow = (path: string, { id, name, client, resources, since }: Consent): string => `
<div><dt><bdi>${escaped(name)}</bdi>${name === client ? '' : ` (${escaped(client)})`}, since ${since.slice(0, 10)}</dt>
<dd>${Object.entries(resources)
  .map(([resource, scopes]) => `${escaped(resource)}: ${escaped(scopes)}`)
  .join('<br>')}
<form method="post" action="${escaped(path)}/${encodeURIComponent(id)}/revoke">
<button>Take it back</button></form></dd></div>`

/** @param brand of the tenant */
export const errorPage = ({ name, logo }: Brand, text: string): Page => ({
  name,
  logo,
  title: 'This sign-in cannot go on',
  body: `<p>${escaped(text)}</p>`
})

/** Texts for people, where the message of the library says too little. */
const reasons: Readonly<Record<string, string>> = {
  invalid_client: 'The app is not known here: it registered too long ago, or its metadata cannot be fetched.',
  invalid_redirect_uri: 'The app asks for an answer to an address that it has not registered.'
}

/** The pages that oidc-provider shows by itself, as those of the tenant: errors, and signing out. */
export function providerPages(config: LoginConfig, identities: ReturnType<typeof createIdentities>) {
  const { name, logo } = config
  function show(ctx: KoaContextWithOIDC, page: Parameters<typeof pageText>[0], formTargets?: readonly string[]): void {
    ctx.set(securityHeaders(formTargets, logo))
    ctx.type = 'html'
    ctx.body = pageText(page)
  }
  return {
    renderError(ctx: KoaContextWithOIDC, out: ErrorOut): void {
      const text = reasons[out.error] ?? `${out.error_description ?? out.error}.`
      show(ctx, errorPage(config, `${text} ${startAgain}`))
    },
    async logoutSource(ctx: KoaContextWithOIDC, form: string): Promise<void> {
      const next = await identities.signOutUrl()
      const buttons =
        '<div class="actions">' +
        '<button class="primary" form="op.logoutForm" name="logout" value="yes">Sign out</button>' +
        '<button form="op.logoutForm">Stay signed in</button></div>'
      show(
        ctx,
        { name, logo, title: 'Sign out?', body: form + buttons },
        next === undefined ? [] : [new URL(next).origin]
      )
    },
    postLogoutSuccessSource(ctx: KoaContextWithOIDC): void {
      const body = `<p>You are signed out of ${escaped(name)}. Apps keep what they were allowed to use.</p>`
      show(ctx, { name, logo, title: 'Signed out', body })
    }
  }
}
