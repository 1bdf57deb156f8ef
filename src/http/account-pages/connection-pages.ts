// The pages of a person's connections: plain HTML that works without JavaScript. Secrets go in and never come out.

import { escaped } from '../../login/pages.ts'
import type { ConnectionState } from '../../vault/connection-state.ts'

export interface ShownConnection extends ConnectionState {
  /** The label of the secret on the page; `help` says where to get one. */
  readonly label?: string | undefined
  readonly help?: string | undefined
}

interface SignInPage {
  readonly path: string
  /** The query of the page that is shown afterwards. */
  readonly query: string
  /** The name of the place where people sign in; undefined: they show a key. */
  readonly place: string | undefined
  /** The credential that the person showed was refused. */
  readonly wrong: boolean
  /** The tenant asks nobody who they are: all are one person. */
  readonly isOpen: boolean
}

export const signInBody = ({ path, query, place, wrong, isOpen }: SignInPage): string => `
${wrong ? '<p role="alert">This is no key of this tenant, or it is not valid any more.</p>' : ''}
${place === undefined ? '' : placeLink(`${path}/sign-in${query}`, place)}
<form method="post" action="${escaped(path + query)}">
<input type="hidden" name="action" value="sign-in">
${isOpen ? '' : keyField}<button${place === undefined ? ' class="primary"' : ''}>Show my connections</button>
</form>
<p class="note">What you connect here is used for ${whoseCalls(isOpen)}.</p>`

const whoseCalls = (isOpen: boolean): string =>
  isOpen ? 'all calls of this machine' : 'your own calls alone, from all your hosts'

const placeLink = (url: string, place: string): string =>
  `<p><a class="primary" href="${escaped(url)}">Sign in at ${escaped(place)}</a></p>
<p class="note">Or show what your host shows:</p>`

const keyField = `<p><label for="key">Your API key, or an access token of yours for this endpoint</label><br>
<input id="key" name="key" type="password" autocomplete="off" required maxlength="12288"></p>
`

interface ConnectionsPage {
  readonly path: string
  readonly csrf: string
  /** The name of the person who is signed in. */
  readonly account: string
  readonly isOpen: boolean
  readonly all: readonly ShownConnection[]
  /** Returns a digest of the server that an upstream leads to now. */
  readonly serverOf: (upstream: string) => string
}

export function connectionsBody({ path, csrf, account, isOpen, all, serverOf }: ConnectionsPage): string {
  const parts = all.map((each) => partOf(path, csrf, each, serverOf(each.upstream)))
  return `
<p class="note">You are <strong>${escaped(account)}</strong>.
What you connect here is used for ${whoseCalls(isOpen)}.</p>
${all.length === 0 ? '<p>Nothing here has to be connected.</p>' : parts.join('\n')}
<div class="end">${formOf(path, hidden(csrf, 'sign-out'), '<button>Sign out</button>')}</div>`
}

const formOf = (target: string, fields: string, rest: string): string =>
  `<form method="post" action="${escaped(target)}">${fields}
${rest}</form>`

function partOf(path: string, csrf: string, each: ShownConnection, server: string): string {
  const { upstream, kind, state, reason } = each
  const isConnected = state === 'connected'
  const isNew = state === 'not connected' || state === 'not in use'
  const tone = isConnected ? 'good' : isNew ? 'none' : 'bad'
  const id = escaped(`of-${upstream}`)
  const button = (text: string, isFirst: boolean): string =>
    `<button${isFirst ? ' class="primary"' : ''} aria-describedby="${id}">${text}</button>`
  const connect =
    kind === 'account'
      ? formOf(path, hidden(csrf, 'connect', upstream), button(isNew ? 'Connect' : 'Connect again', !isConnected))
      : formOf(
          `${path}?upstream=${encodeURIComponent(upstream)}`,
          hidden(csrf, 'secret', upstream, server),
          secretField(each, button('Save', !isConnected))
        )
  const disconnect = formOf(path, hidden(csrf, 'disconnect', upstream), button('Disconnect', false))
  return `<section class="connection">
<h2 id="${id}">${escaped(upstream)} <span class="state ${tone}">${state}</span></h2>
${reason === undefined ? '' : `<p role="alert">${escaped(sentence(reason))}</p>`}
${factsOf(each)}
<div class="actions">${connect}${state === 'not connected' ? '' : disconnect}</div></section>`
}

function secretField({ upstream, state, label = 'API key', help }: ShownConnection, button: string): string {
  const id = escaped(`secret-${upstream}`)
  const where = help && `<p class="note"><a href="${escaped(help)}" rel="noreferrer">Where to get one</a></p>`
  return `<label for="${id}">${state === 'connected' ? 'Another ' : ''}${escaped(label)}</label>
<input id="${id}" name="secret" type="password" autocomplete="off" required maxlength="8192">
${button}${where ?? ''}`
}

function factsOf({ account, provider, scopes = [], connectedAt, lastUsedAt }: ShownConnection): string {
  if (connectedAt === undefined) return ''
  const facts = [
    ...(account === undefined ? [] : [['Account', account]]),
    ...(provider === undefined ? [] : [['Account at', provider]]),
    ...(scopes.length === 0 ? [] : [['May', scopes.join(', ')]]),
    ['Connected', dateOf(connectedAt)],
    ['Last used', lastUsedAt === undefined ? 'never, or more than a year ago' : dateOf(lastUsedAt)]
  ]
  const rows = facts.map(([name = '', value = '']) => `<div><dt>${name}</dt><dd>${escaped(value)}</dd></div>`)
  return `<dl class="facts">${rows.join('')}</dl>`
}

/** its provider does not accept it -> Its provider does not accept it. */
const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
/** 2026-11-25T09:40:50.952Z -> 25 November 2026 at 09:40 UTC */
const dateOf = (iso: string): string => `${dates.format(new Date(iso))} UTC`

const hidden = (csrf: string, action: string, upstream?: string, server?: string): string =>
  Object.entries({ csrf, action, ...(upstream && { upstream }), ...(server && { server }) })
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`)
    .join('')

/** A browser does not follow a redirect after a form to where the form may not lead; a link it does follow. */
export const leaveBody = (url: string): string => `
<p>You go on at <strong>${escaped(new URL(url).host)}</strong>, where you allow the gateway to use your account.</p>
<div class="actions"><a class="primary" href="${escaped(url)}" rel="noreferrer">Go on</a></div>`

export const noteBody = (text: string, path: string): string =>
  `<p>${escaped(text)}</p><p><a href="${escaped(path)}">My connections</a></p>`
