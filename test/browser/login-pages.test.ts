// The pages of the login front in a real browser, without JavaScript: what a person allows is remembered, listed and
// taken back, and who signs out is out here and at the provider.

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { violationsOf } from '../kit/accessibility.ts'
import { startChromium } from '../kit/chromium.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { begin, loginGateway, pkce, register, tokens } from '../login/kit.ts'

/** A host on the web, at an address of its own. */
async function webHost(t: Teardown) {
  const file = (name: string): Promise<string> => readFile(join(import.meta.dirname, '../kit/tls', name), 'utf8')
  const [cert, key] = [await file('localhost.crt'), await file('localhost.key')]
  const server = createServer({ cert, key }, (_request, response) => response.end('the host'))
  const { port } = new URL(await listen(t, server))
  return `https://localhost:${port}/callback`
}

const heading = (page: Page): Promise<string> => page.innerText('h1')
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()

t.test('a person allows a host, is not asked again, takes it back, and signs out', async (t) => {
  const front = await loginGateway(t)
  const uri = await webHost(t)
  const { clientId } = await register(front, { application_type: 'web', redirect_uris: [uri] })
  const { verifier, challenge } = pkce()
  const start = begin(front, clientId, { redirect_uri: uri, code_challenge: challenge })
  const browser = await startChromium(t)
  const { page, complaints } = await browser.open(start, { javaScriptEnabled: false })

  t.equal(await heading(page), 'Allow A Host?')
  const asked = await page.innerText('main')
  for (const part of ['Acme Corporation', 'ada@example.com', 'localhost', front.url(), 'mcp'])
    t.ok(asked.includes(part), part)
  await press(page, 'Allow')
  await page.waitForURL(/callback\?code=/)
  const code = new URL(page.url()).searchParams.get('code') ?? ''
  const grant = { grant_type: 'authorization_code', client_id: clientId, redirect_uri: uri, code }
  const issued = await tokens(front, { ...grant, code_verifier: verifier })
  t.equal(issued.status, 200)

  await page.goto(start)
  t.match(page.url(), /callback\?code=/, 'what was allowed is not asked again')

  await page.goto(`${front.issuer}/consents`)
  t.match(await page.innerText('main'), /ada@example\.com[\s\S]*A Host/)
  await press(page, /Take it back/)
  t.notMatch(await page.innerText('main'), /A Host/)
  const refreshed = await tokens(front, {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: String(issued.body['refresh_token'])
  })
  t.match(refreshed, { status: 400, body: { error: 'invalid_grant' } })
  await page.goto(start)
  t.equal(await heading(page), 'Allow A Host?', 'and asked about anew')

  front.provider.person = 'bob'
  await page.goto(`${front.issuer}/consents`)
  t.match(await page.innerText('main'), /ada@example\.com/, 'as long as she is signed in')
  await page.goto(`${front.issuer}/session/end`)
  t.equal(await heading(page), 'Sign out?')
  await press(page, 'Sign out')
  await page.waitForURL(`${front.provider.url}/session/end**`)
  await press(page, /yes/i)
  await page.waitForURL(`${front.issuer}/session/end/success**`)
  t.match(await heading(page), /Signed out/)
  await page.goto(`${front.issuer}/consents`)
  t.match(await page.innerText('main'), /bob@example\.com/, 'whoever sits there next signs in at the provider')
  // The page of the provider is not ours, and there is no icon.
  t.same(
    complaints.filter((each) => each.includes(front.origin) && !each.includes('favicon')),
    []
  )
})

t.test('each page is accessible, in light and dark, on a screen of 360 pixels', async (t) => {
  const front = await loginGateway(t)
  const { clientId } = await register(front)
  const browser = await startChromium(t)
  const pages = {
    consent: begin(front, clientId),
    consents: `${front.issuer}/consents`,
    'sign-out': `${front.issuer}/session/end`,
    'signed out': `${front.issuer}/session/end/success`,
    refusal: begin(front, 'nobody')
  }
  const { page } = await browser.open(pages.consent, { viewport: { width: 360, height: 740 } })
  for (const [what, url] of Object.entries(pages)) {
    await page.goto(url)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      t.same(await violationsOf(page), [], `${what}, ${colorScheme}`)
    }
    const { scrollWidth } = await page.evaluate<{ scrollWidth: number }>(
      '({ scrollWidth: document.documentElement.scrollWidth })'
    )
    t.ok(scrollWidth <= 360, `${what} does not scroll sideways: ${scrollWidth}`)
  }
})
