// The pages of a person's connections in a real browser: for whom they are, an account is connected at its server and
// comes back, a secret is entered, and a link that was made for somebody else shows nothing.

import t from 'tap'
import type { Page } from 'playwright-core'
import { violationsOf } from '../kit/accessibility.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { startChromium } from '../kit/chromium.ts'
import { connectionsRig, signInRig } from './connections-rig.ts'

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel(/Your API key/).fill(key)
  await page.getByRole('button', { name: 'Show my connections' }).click()
}

t.test('a person connects an account and a secret from the links that their host shows, and disconnects', async (t) => {
  const rig = await connectionsRig(t)
  const browser = await startChromium(t)
  const { page, complaints } = await browser.open(await rig.linkOf('tracker'))
  t.same(await violationsOf(page), [])
  await signIn(page, keyOf.ada)
  await page.getByText('You are ada').waitFor()
  t.match(await page.innerText('main'), /acme[\s\S]*Your connections[\s\S]*your own calls alone, from all your hosts/)
  t.notMatch(await page.innerText('main'), /search/, 'the link is of one upstream')
  await page.getByRole('button', { name: 'Connect' }).click()
  t.match(await page.innerText('main'), /You go on at 127\.0\.0\.1/)
  t.same(await violationsOf(page), [])
  await page.getByRole('link', { name: 'Go on' }).click()
  await page.getByText('tracker is connected').waitFor()
  t.ok((await rig.call('tracker__echo')).result?.content, 'the call is repeated')

  await page.getByRole('link', { name: 'My connections' }).click()
  await page.getByLabel('API key of Search').fill('the-secret-of-ada')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Another API key of Search').waitFor()
  const all = page.locator('.connection')
  t.match(
    await all.nth(0).innerText(),
    /tracker\s*connected[\s\S]*127\.0\.0\.1:\d+[\s\S]*read[\s\S]*Last used[\s\S]*UTC/
  )
  t.match(await all.nth(1).innerText(), /notes\s*not connected/)
  t.match(await all.nth(2).innerText(), /search\s*connected[\s\S]*never/)
  t.notMatch(await page.content(), /the-secret-of-ada/)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    t.same(await violationsOf(page), [], colorScheme)
  }
  await page.setViewportSize({ width: 360, height: 720 })
  t.ok(
    await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth'),
    'nothing stands out of a small screen'
  )
  await all.nth(0).getByRole('button', { name: 'Disconnect' }).click()
  await page.locator('.connection', { hasText: 'tracker not connected' }).waitFor()
  t.equal((await rig.call('tracker__echo')).error.code, -32042)
  t.same(complaints, [])
})

t.test('a link that was made for somebody else says so, and connects nothing', async (t) => {
  const rig = await connectionsRig(t)
  const browser = await startChromium(t)
  const link = await rig.linkOf('tracker')
  const { page } = await browser.open(link)
  await signIn(page, keyOf.bob)
  await page.getByText('made for somebody else').waitFor()
  t.match(await page.innerText('main'), /Not connected/)
  t.equal(await page.getByRole('button').count(), 0)
  t.same(await violationsOf(page), [])
  const own = await browser.open(link)
  await signIn(own.page, keyOf.ada)
  await own.page.getByRole('button', { name: 'Connect' }).waitFor()
})

t.test(
  'a person signs in at the login front of the tenant, without JavaScript, and is who they are there',
  async (t) => {
    const { front, page: address } = await signInRig(t)
    const browser = await startChromium(t)
    const looked = await browser.open(address)
    for (const colorScheme of ['light', 'dark'] as const) {
      await looked.page.emulateMedia({ colorScheme })
      t.same(await violationsOf(looked.page), [], colorScheme)
    }
    const { page, complaints } = await browser.open(address, { javaScriptEnabled: false })
    t.match(await page.innerText('main'), /Sign in at Acme Corporation[\s\S]*Your API key/)
    await page.getByRole('link', { name: 'Sign in at Acme Corporation' }).click()
    await page.getByText('You are ada@example.com').waitFor()
    t.equal(page.url(), address)
    await page.getByRole('button', { name: 'Sign out' }).click()
    const asked = front.provider.tokenRequests
    await page.getByRole('link', { name: 'Sign in at Acme Corporation' }).click()
    await page.getByText('You are ada@example.com').waitFor()
    t.equal(front.provider.tokenRequests, asked, 'the login front knows the browser')
    t.same(complaints, [])
  }
)
