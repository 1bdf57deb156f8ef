// What every test of the console looks at: a gateway with an admin API, three upstreams of which one is down and one
// slow, two tenants of the configuration file and one that the API made, and people who have called something.

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { violationsOf } from '../kit/accessibility.ts'
import { adminGateway, adminKeys, adminSection, globexKey, type AdminGateway } from '../kit/admin.ts'
import { startChromium, type OpenedPage, type OpenOptions, type TestBrowser } from '../kit/chromium.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream, type HttpUpstream, type HttpUpstreamOptions } from '../kit/upstream.ts'
import type { Teardown } from '../kit/until.ts'

export interface ConsoleRig extends AdminGateway {
  readonly browser: TestBrowser
  readonly tickets: HttpUpstream
  /** Of acme, where she has a session; of globex; and of team, which the API made. */
  readonly ada: LegacyClient
  readonly gus: LegacyClient
  readonly tom: LegacyClient
  /** Some calls of both tenants, good ones and others. */
  traffic(): Promise<void>
  /** Signed in as the holder of a key, at a page: the part of the address after `#/`. */
  signedIn(place: string, key?: string, options?: OpenOptions): Promise<OpenedPage>
  /** From one place to another one: what was shown at the one before is gone. */
  goTo(page: Page, place: string): Promise<void>
}

export interface ConsoleRigOptions {
  /** Of the upstream `tickets`. */
  readonly script?: HttpUpstreamOptions
  /** Of the configuration, besides its keys. */
  readonly admin?: Readonly<Record<string, unknown>>
  /** As `gateway` of the kit has it. */
  readonly store?: string
  /** Of acme, besides its three. */
  readonly upstreams?: Readonly<Record<string, unknown>>
}

export async function consoleRig(
  t: Teardown,
  { script = {}, admin = {}, store, upstreams = {} }: ConsoleRigOptions = {}
): Promise<ConsoleRig> {
  const [tickets, slow] = await Promise.all([startUpstream(script), startUpstream()])
  for (const each of [tickets, slow]) t.teardown(() => each.close())
  const http = ({ url }: HttpUpstream) => ({ type: 'http', url })
  const gateway = await adminGateway(t, {
    upstreams: {
      ...{ tickets: http(tickets), slow: http(slow), files: { type: 'http', url: 'http://127.0.0.1:9/mcp' } },
      ...upstreams
    },
    endpoints: {
      default: { upstreams: ['tickets', 'slow', 'files', ...Object.keys(upstreams)] },
      // Titles are of newer revisions: those of this one differ.
      support: { upstreams: ['tickets'], prefix: '', tools: { 'tickets/echo': { title: 'Echo' } } }
    },
    ...(store !== undefined && { store }),
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { notes: http(slow) } } },
    top: {
      audit: {},
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      admin: { ...adminSection, ...admin }
    }
  })
  const { call } = gateway
  await call('PUT', '/v1/tenants/team', {
    body: { auth: {}, upstreams: { tickets: http(tickets), notes: http(slow) } }
  })
  const { json } = await call('POST', '/v1/tenants/team/keys', { body: { name: 'tom' } })
  const [ada, gus, tom] = await Promise.all([
    legacyClient(gateway.url(), apiKey),
    legacyClient(gateway.url('default', 'globex'), globexKey),
    legacyClient(gateway.url('default', 'team'), (json as { key: string }).key)
  ])
  const browser = await startChromium(t)
  const tool = async (client: LegacyClient, name: string) =>
    await client.request('tools/call', { name, arguments: { message: 'please' } })
  return {
    ...gateway,
    get log() {
      return gateway.log
    },
    browser,
    tickets,
    ada,
    gus,
    tom,
    async traffic() {
      for (const name of ['tickets__echo', 'tickets__fail', 'tickets__rpcerror', 'slow__echo', 'files__read'])
        await tool(ada, name)
      const waiting = tool(ada, 'slow__slow')
      await tool(gus, 'notes__echo')
      await tool(tom, 'tickets__echo')
      slow.server.release()
      await waiting
    },
    async signedIn(place, key = adminKeys.platform, options) {
      const { adminUrl } = gateway
      const { headers, json } = await call('POST', '/console/session', {
        key: null,
        headers: { Origin: adminUrl },
        body: { key }
      })
      const [name = '', value = ''] = (headers['set-cookie']?.[0] ?? '').split(/[=;]/)
      const session = { cookie: { name, value }, token: (json as { token: string }).token }
      const opened = await browser.open(`${adminUrl}/console/#/${place}`, {
        ...options,
        state: stateOf(adminUrl, session)
      })
      await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      return opened
    },
    async goTo(page, place) {
      await page.goto(`${gateway.adminUrl}/console/#/${place}`)
      const [name = '', query] = place.split('?')
      const tenant = new URLSearchParams(query).get('tenant')
      const first = `a[href="#/overview${tenant === null ? '' : `?tenant=${tenant}`}"]`
      const other = `[aria-current="page"]:not([href^="#/${name}"])`
      // Whoever may not see a page has no link to it.
      await page.locator(`nav ul:has(${first}):not(:has(${other}))`).waitFor({ state: 'attached' })
    }
  }
}

/** Further upstreams: over HTTP+SSE, a process, and one for which each person gives a secret of their own. */
export async function furtherUpstreams(t: Teardown): Promise<NonNullable<ConsoleRigOptions['upstreams']>> {
  const [older, search] = await Promise.all([startSseUpstream(), startUpstream()])
  for (const each of [older, search]) t.teardown(() => each.close())
  const auth = { type: 'userSecret', header: 'X-Api-Key', label: 'API key of Search' }
  return {
    older: { type: 'http', url: older.url },
    local: { command: process.execPath, args: [join(import.meta.dirname, '../kit/stdio-server.ts')] },
    search: { type: 'http', url: search.url, auth }
  }
}

/** The holder of a key of acme gives a secret for the upstream `search`. */
export async function giveSecret({ publicUrl }: ConsoleRig, key: string, secret: string): Promise<void> {
  const { tab, page } = await signedIn(`${publicUrl}/t/acme/connections?upstream=search`, key)
  await submit(tab, page, 'secret', { secret })
}

/** What a browser keeps of a session, once somebody has signed in. */
const stateOf = (
  url: string,
  { cookie, token }: { readonly cookie: { readonly name: string; readonly value: string }; readonly token: string }
): OpenOptions['state'] => ({
  cookies: [
    {
      ...cookie,
      domain: new URL(url).hostname,
      path: '/',
      expires: -1,
      httpOnly: true,
      secure: false,
      sameSite: 'Strict'
    }
  ],
  origins: [{ origin: url, localStorage: [{ name: 'gatehouse-console-token', value: token }] }]
})

/** Of the page Live, beside those that run. */
export const endedCalls = (page: Page) => page.getByRole('table', { name: 'Calls, the newest first' })

/** What axe finds in light colours, and in dark ones of what depends on colours. */
export async function violationsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  const dark = await violationsOf(page, ['color-contrast', 'link-in-text-block'])
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  return [...dark.map((each) => `dark: ${each}`), ...(await violationsOf(page))]
}
