// `npm run screenshots`: each page of the console with some traffic behind it, in light and in dark, into docs/console;
// those of the login front into docs/login, and those of a person's connections into docs/connections. Arguments: names
// of pages, for these alone.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { connectionsRig, signInRig } from '../test/browser/connections-rig.ts'
import { answeringClient } from '../test/kit/answering-client.ts'
import { consoleRig, furtherUpstreams, giveSecret, type ConsoleRig } from '../test/console/rig.ts'
import { begin, loginGateway, redirectUri, register } from '../test/login/kit.ts'
import { keyOf } from '../test/kit/acme-gateway.ts'
import { startChromium } from '../test/kit/chromium.ts'
import { connectAccount, signedIn } from '../test/kit/connect-page.ts'
import { key as apiKey } from '../test/kit/gateway.ts'
import { until } from '../test/kit/until.ts'
import { smallPng } from './small-png.ts'
import { isMethod } from '../test/kit/upstream.ts'

const docs = join(import.meta.dirname, '..', 'docs')
/** By the name of their files: where each page is looked at, and what is there once it is ready. */
const places: Readonly<Record<string, readonly [place: string, ready: string]>> = {
  overview: ['overview', '.plot'],
  live: ['live', '.calls'],
  upstreams: ['upstreams?tenant=acme&upstream=files', '#upstream'],
  tenants: ['tenants?tenant=team&endpoint=default', '.rename'],
  people: ['people?tenant=acme', '.stop'],
  catalog: ['catalog?tenant=acme', '.sum'],
  policy: ['policy?tenant=team', '.sum'],
  audit: ['audit?tenant=acme', '#records ~ * table'],
  connect: ['connect?tenant=acme', '.hosts']
}
/** What else is looked at there, by the names of files, and how it is come to. */
const views: Readonly<
  Record<string, readonly [place: string, come: (page: Page, rig: ConsoleRig) => Promise<unknown>]>
> = {
  call: [
    'live?tenant=acme',
    async (page, { url }) => {
      await page.getByText('Listening').waitFor()
      const client = await answeringClient(url(), apiKey, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
      const call = await client.start('tools/call', { name: 'tickets__elicit', arguments: {} })
      const [asked] = await call.serverRequests()
      // As a person would.
      await setTimeout(800)
      await client.answer(asked ?? {}, { action: 'accept', content: { name: 'Ada' } })
      await call.final()
      await page.getByRole('row').filter({ hasText: 'elicit' }).getByRole('button').click()
      await page.getByRole('dialog').waitFor()
    }
  ],
  stderr: ['upstreams?tenant=acme&upstream=local', (page) => page.locator('.tail').scrollIntoViewIfNeeded()],
  discovery: [
    'upstreams?tenant=team',
    async (page, { tickets }) => {
      // Its lists are never told, so that it is still being looked at.
      tickets.override(isMethod('tools/list'), () => {})
      await page.getByRole('button', { name: 'Add upstreams' }).click()
      await page.getByLabel('Name', { exact: true }).fill('weather')
      await page.getByLabel('URL', { exact: true }).fill(tickets.url)
      await page.getByRole('button', { name: 'Check it' }).click()
      await page.locator('.hops').getByText('initialize').waitFor()
    }
  ],
  moments: [
    'catalog?tenant=team',
    async (page, { call }) => {
      await call('DELETE', '/v1/tenants/team/policy', { headers: { 'If-Match': '*' } })
      await page.getByLabel('Compare two').check()
      const choice = page.getByLabel('The first, as it is')
      await choice.selectOption({ index: 1 })
      await page.getByText(/Only the second sees [1-9]/).waitFor()
    }
  ]
}
const lines = [
  'reading /srv/files, 1,204 files\n',
  'index is older than the folder: built anew in 412 ms\n',
  'warning: reports/2026-q3.xlsx is locked by another process, left out\n'
]
const rules = [
  { name: 'everybody-reads', effect: 'allow', what: { names: ['echo', 'get_*', 'list_*'] } },
  { name: 'developers', effect: 'allow', who: { groups: ['developers'] }, what: { upstreams: ['tickets'] } },
  { name: 'large-amounts', effect: 'deny', what: { kinds: ['tool'], names: ['pay*'] }, when: 'args.amount > 500.0' },
  { name: 'no-crash', effect: 'deny', what: { names: ['crash', 'slow'] } }
]

const window = { viewport: { width: 1280, height: 860 } }
const ends: Array<() => unknown> = []
const teardown = { teardown: (end: () => unknown) => void ends.unshift(end) }
const wanted = process.argv.slice(2)
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name)

async function picture(page: Page, folder: string, name: string): Promise<void> {
  mkdirSync(join(docs, folder), { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    writeFileSync(join(docs, folder, `${name}-${colorScheme}.png`), smallPng(await page.screenshot()))
  }
  console.log(name)
}

/** Plots are of minutes. */
async function someMinutesOf(traffic: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 200_000
  while (Date.now() < end) {
    await traffic()
    await setTimeout(500 + 1_500 * Math.random())
  }
}

async function picturesOfConsole(): Promise<void> {
  const { local, ...others } = await furtherUpstreams(teardown)
  // By its name: pictures show no path of the machine that they are made on.
  const upstreams = { ...others, local: { ...(local as object), command: 'node' } }
  const rig = await consoleRig(teardown, { upstreams })
  await rig.call('PUT', '/v1/tenants/team/policy', { body: { default: 'deny', rules } })
  const listed = async (): Promise<string> => (await rig.ada.request('tools/list')).text
  await until('all are listed', async () => /older__echo[^]*local__echo/.test(await listed()))
  await giveSecret(rig, apiKey, 'a secret of their own')
  for (let round = 0; round < 4; round++) await rig.traffic()
  for (const [name, [place, ready]] of Object.entries(places)) {
    if (!isWanted(name)) continue
    const { page } = await rig.signedIn(place, undefined, window)
    if (name === 'live') await page.getByText('Listening').waitFor()
    if (name === 'overview') {
      await page.getByRole('combobox', { name: 'Last' }).selectOption('10 minutes')
      await someMinutesOf(rig.traffic)
    }
    await rig.traffic()
    await page.locator(ready).first().waitFor()
    // The call that ends last.
    if (name === 'live') await page.getByRole('rowheader', { name: 'slow/slow' }).waitFor()
    await page.locator('h1').click()
    await picture(page, 'console', name)
    await page.context().close()
  }
  for (const text of lines) await rig.ada.request('tools/call', { name: 'local__stderr', arguments: { text } })
  for (const [name, [place, come]] of Object.entries(views)) {
    if (!isWanted(name)) continue
    const { page } = await rig.signedIn(place, undefined, window)
    await come(page, rig)
    await picture(page, 'console', name)
    await page.context().close()
  }
}

/** Without JavaScript, as all that people see there. */
async function picturesOfLogin(): Promise<void> {
  const front = await loginGateway(teardown)
  const { clientId } = await register(front, { client_name: 'Claude' })
  const chromium = await startChromium(teardown)
  const viewport = { width: 620, height: 640 }
  const { page } = await chromium.open(begin(front, clientId), { viewport, javaScriptEnabled: false })
  const pages = { consent: page.url(), consents: `${front.issuer}/consents`, 'sign-out': `${front.issuer}/session/end` }
  for (const [name, url] of Object.entries(pages)) {
    await page.goto(url)
    await picture(page, 'login', name)
    if (name !== 'consent') continue
    // What is listed next.
    await page.route(`${redirectUri}**`, (route) => route.fulfill({ body: 'the app' }))
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(`${redirectUri}**`)
  }
}

/** One account that is used, one that has to be connected again, a secret that is not entered, and the way there. */
async function picturesOfConnections(): Promise<void> {
  const rig = await connectionsRig(teardown)
  const { tab } = await signedIn(rig.pages, keyOf.ada)
  for (const upstream of ['tracker', 'notes'])
    await connectAccount(tab, await tab.go(`${rig.pages}?upstream=${upstream}`, 'none'))
  await rig.call('tracker__echo')
  await rig.call('notes__echo')
  rig.notes.scopes = ['export']
  await rig.call('notes__echo')
  const link = await rig.linkOf('search')
  const chromium = await startChromium(teardown)
  const signIn = async (url: string, key: string): Promise<Page> => {
    const { page } = await chromium.open(url, { viewport: { width: 760, height: 1150 } })
    await page.getByLabel(/Your API key/).fill(key)
    await page.getByRole('button', { name: 'Show my connections' }).click()
    await page.locator('h1').click()
    return page
  }
  await picture(await signIn(rig.pages, keyOf.ada), 'connections', 'connections')
  const other = await signIn(link, keyOf.bob)
  await other.setViewportSize({ width: 760, height: 420 })
  await picture(other, 'connections', 'somebody-else')
  const leaving = await signIn(`${rig.pages}?upstream=tracker`, keyOf.bob)
  await leaving.setViewportSize({ width: 760, height: 420 })
  await leaving.getByRole('button', { name: 'Connect' }).click()
  await leaving.getByRole('link', { name: 'Go on' }).waitFor()
  await picture(leaving, 'connections', 'go-on')
  await leaving.getByRole('link', { name: 'Go on' }).click()
  await leaving.getByText('tracker is connected').waitFor()
  await picture(leaving, 'connections', 'connected')
}

async function picturesOfSignIn(): Promise<void> {
  const { page: address } = await signInRig(teardown)
  const chromium = await startChromium(teardown)
  const { page } = await chromium.open(address, { viewport: { width: 620, height: 480 }, javaScriptEnabled: false })
  await picture(page, 'connections', 'sign-in')
}

if (Object.keys({ ...places, ...views }).some(isWanted)) await picturesOfConsole()
if (isWanted('login')) await picturesOfLogin()
if (isWanted('connections')) await picturesOfConnections()
if (isWanted('sign-in')) await picturesOfSignIn()
for (const end of ends) await end()
