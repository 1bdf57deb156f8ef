// A person before the page of their connections.

import { browser, type Landing } from './browser.ts'

const unescaped = (text = ''): string =>
  text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

/** Sends a form of a page, with its hidden fields. */
export async function submit(
  tab: ReturnType<typeof browser>,
  { url, html }: Landing,
  action: string,
  fields: Record<string, string> = {}
): Promise<Landing> {
  const forms = [...html.matchAll(/<form method="post" action="([^"]*)">([\s\S]*?)<\/form>/g)]
  const form = forms.find(([, , inner = '']) => inner.includes(`name="action" value="${action}"`))
  if (form === undefined) throw new Error(`no form ${action} in ${html}`)
  const hidden = [...(form[2] ?? '').matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  const body = new URLSearchParams({
    ...Object.fromEntries(hidden.map(([, name = '', value]) => [name, unescaped(value)])),
    ...fields
  })
  const headers = { origin: url.origin, 'content-type': 'application/x-www-form-urlencoded' }
  return await tab.go(new URL(unescaped(form[1]), url).href, 'none', { method: 'POST', headers, body: String(body) })
}

/** The link of the page that leads to where people sign in. */
export function linkToSignIn({ html, url }: Pick<Landing, 'html' | 'url'>): string {
  const link = /<a class="primary" href="([^"]+)">Sign in at /.exec(html)?.[1]
  if (link === undefined) throw new Error(`no link to sign in: ${html}`)
  return new URL(unescaped(link), url).href
}

export async function signedIn(address: string, key: string) {
  const tab = browser()
  return { tab, page: await submit(tab, await tab.go(address, 'none'), 'sign-in', { key }) }
}

/**
 * Connects an account: presses the button of the page, and goes where its link leads.
 * @param page signed in
 * @returns where the browser ends
 */
export async function connectAccount(
  tab: ReturnType<typeof browser>,
  page: Landing,
  stopAt = 'none'
): Promise<Landing> {
  const leaving = await submit(tab, page, 'connect')
  const link = /<a class="primary" href="([^"]+)"/.exec(leaving.html)?.[1]
  if (link === undefined) throw new Error(`no link to go on: ${leaving.status} ${leaving.html}`)
  return await tab.go(unescaped(link), stopAt)
}
