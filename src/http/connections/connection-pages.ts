// The pages of a person's connections: plain HTML that works without JavaScript. Secrets go in and never come out.

import { escaped } from '../../login/pages.ts'
import type { ConnectionState } from '../../vault/connection-state.ts'

export interface ShownConnection extends ConnectionState {
  /** Of the secret, on the page; where to get one. */
  readonly label?: string | undefined
  readonly help?: string | undefined
}

/** @param isOpen the tenant asks nobody who they are: all are one person */
export const signInBody = (path: string, wrong: boolean, isOpen: boolean): string => `
${wrong ? '<p role="alert">This is no key of this tenant, or it is not valid any more.</p>' : ''}
<form method="post" action="${escaped(path)}">
<input type="hidden" name="action" value="sign-in">
${isOpen ? '' : keyField}<button class="primary">Show my connections</button>
</form>
<p class="note">What you connect here is used for ${whoseCalls(isOpen)}.</p>`

const whoseCalls = (isOpen: boolean): string =>
  isOpen ? 'all calls of this machine' : 'your own calls alone, from all your hosts'

const keyField = `<p><label for="key">Your API key, or an access token of yours for this endpoint</label><br>
<input id="key" name="key" type="password" autocomplete="off" required maxlength="12288"></p>
`

export function connectionsBody(path: string, csrf: string, account: string, all: readonly ShownConnection[]): string {
  const rows = all.map((each) => `<div><dt>${escaped(each.upstream)}</dt><dd>${rowOf(path, csrf, each)}</dd></div>`)
  return `
<p class="note">You are ${escaped(account)}.</p>
${all.length === 0 ? '<p>Nothing here has to be connected.</p>' : `<dl>${rows.join('\n')}</dl>`}
<form method="post" action="${escaped(path)}">${hidden(csrf, 'sign-out')}<button>Sign out</button></form>`
}

function rowOf(path: string, csrf: string, each: ShownConnection): string {
  const { upstream, kind, state, reason, connectedAt, scopes, label = 'API key', help } = each
  const facts = [
    state,
    ...(connectedAt === undefined ? [] : [`since ${dateOf(connectedAt)}`]),
    ...(scopes === undefined || scopes.length === 0 ? [] : [`may: ${scopes.join(', ')}`]),
    ...(reason === undefined ? [] : [reason])
  ]
  const target = `${escaped(path)}?upstream=${encodeURIComponent(upstream)}`
  const connect =
    kind === 'account'
      ? `<form method="post" action="${escaped(path)}">${hidden(csrf, 'connect', upstream)}
<button class="primary">${state === 'not connected' ? 'Connect' : 'Connect again'}</button></form>`
      : `<form method="post" action="${target}">${hidden(csrf, 'secret', upstream)}
<label for="secret-${escaped(upstream)}">${escaped(label)}</label>
<input id="secret-${escaped(upstream)}" name="secret" type="password" autocomplete="off" required maxlength="8192">
<button class="primary">Save</button></form>
${help === undefined ? '' : `<p class="note"><a href="${escaped(help)}" rel="noreferrer">Where to get one</a></p>`}`
  const disconnect =
    state === 'not connected'
      ? ''
      : `<form method="post" action="${escaped(path)}">${hidden(csrf, 'disconnect', upstream)}
<button>Disconnect</button></form>`
  return `<p>${escaped(facts.join('; '))}</p><div class="actions">${connect}${disconnect}</div>`
}

const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
/** 2026-11-25T09:40:50.952Z -> 25 November 2026 at 09:40 UTC */
const dateOf = (iso: string): string => `${dates.format(new Date(iso))} UTC`

const hidden = (csrf: string, action: string, upstream?: string): string =>
  [['csrf', csrf], ['action', action], ...(upstream === undefined ? [] : [['upstream', upstream]])]
    .map(([name = '', value = '']) => `<input type="hidden" name="${name}" value="${escaped(value)}">`)
    .join('')

/** A browser does not follow a redirect after a form to where the form may not lead; a link it does follow. */
export const leaveBody = (url: string): string => `
<p>You go on at <strong>${escaped(new URL(url).host)}</strong>, where you allow the gateway to use your account.</p>
<div class="actions"><a class="primary" href="${escaped(url)}" rel="noreferrer">Go on</a></div>`

export const noteBody = (text: string, path: string): string =>
  `<p>${escaped(text)}</p><p><a href="${escaped(path)}">My connections</a></p>`
