// What clients get, in a real browser: the catalog as somebody sees it, a tool tried with what it asks, and how hosts are
// set up and examined.

import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { isCall } from '../kit/upstream.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('a catalog is read by the mouse, and a tool is tried as oneself by the keyboard', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=acme&endpoint=support')
  await page.getByRole('button', { name: 'elicit', exact: true }).waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'elicit', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Why it is offered').waitFor()
  await dialog.getByText('the elicit tool', { exact: true }).waitFor()
  t.same(await violationsInBothThemes(page), [])

  await dialog.getByRole('button', { name: 'Try it' }).focus()
  await page.keyboard.press('Enter')
  await dialog.getByLabel('Your API key or token').fill(adminKeys.platform)
  await page.keyboard.press('Enter')
  await dialog.getByText('refused', { exact: true }).waitFor()
  t.pass('an admin key calls nothing')
  await dialog.getByLabel('Your API key or token').fill(apiKey)
  await page.keyboard.press('Enter')
  await dialog.getByRole('heading', { name: 'The server asks' }).waitFor()
  t.same(await violationsInBothThemes(page), [])
  await dialog.getByLabel('name', { exact: true }).fill('<img src=x onerror=alert(1)>')
  await page.keyboard.press('Enter')
  await dialog.getByText('succeeded').waitFor()
  await dialog.locator('pre').getByText('onerror=alert(1)').first().waitFor()
  t.equal(await dialog.locator('img').count(), 0, 'what comes back is text')
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  t.notMatch(await page.evaluate('JSON.stringify(localStorage)'), apiKey)
  t.same(complaints, [])
})

t.test('what a tool says on its way, and images, are shown', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=acme&endpoint=support')
  const dialog = page.getByRole('dialog')
  const tryTool = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).click()
    await dialog.getByRole('button', { name: 'Try it' }).click()
    await dialog.getByLabel('Your API key or token').fill(apiKey)
    await page.keyboard.press('Enter')
  }
  await tryTool('slow')
  await dialog.getByRole('progressbar').waitFor()
  await dialog.getByText('Running … (0)').waitFor()
  t.same(await violationsInBothThemes(page), [])
  rig.tickets.server.release()
  await dialog.getByText('succeeded').waitFor()
  await page.keyboard.press('Escape')
  await tryTool('content')
  const image = dialog.getByRole('img', { name: 'An image that the tool returned (image/png)' })
  await image.waitFor()
  const width = "document.querySelector('.shown').decode().then(() => document.querySelector('.shown').naturalWidth)"
  t.equal(await page.evaluate(width), 2, 'and it is one')
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('a call is made once, and its credential is kept for one endpoint and one person', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=acme&endpoint=support')
  const dialog = page.getByRole('dialog')
  const credential = dialog.getByLabel('Your API key or token')
  const open = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).click()
    await dialog.getByRole('button', { name: 'Try it' }).click()
    await dialog.getByRole('button', { name: 'Call it' }).waitFor()
    return await credential.inputValue()
  }
  const close = async () => {
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }
  const calls = () => rig.tickets.seen.filter(isCall('slow')).length
  const before = calls()
  t.equal(await open('slow'), '')
  await credential.fill(apiKey)
  await page.keyboard.press('Enter')
  await dialog.getByText('Running … (0)').waitFor()
  await page.keyboard.press('Enter')
  rig.tickets.server.release()
  await dialog.getByText('succeeded').waitFor()
  t.equal(calls() - before, 1)
  await close()
  t.equal(await open('echo'), apiKey, 'for the same endpoint it is there again')
  await close()
  await page.getByRole('combobox', { name: 'Endpoint' }).selectOption('default')
  t.equal(await open('tickets__echo'), '', 'for another one it is not')
  await close()
  await page.getByRole('combobox', { name: 'Endpoint' }).selectOption('support')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Admin key or access token').fill(adminKeys.acme)
  await page.keyboard.press('Enter')
  t.equal(await open('echo'), '', 'nor for whoever signs in next')
  t.same(complaints, [])
})

t.test('two revisions are compared, and a viewer reads what it may not try', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=acme&endpoint=support', adminKeys.viewer)
  await page.getByRole('button', { name: 'echo', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Why it is offered').waitFor()
  t.equal(await dialog.getByRole('button', { name: 'Try it' }).count(), 0)
  await page.keyboard.press('Escape')
  await page.getByLabel('Compare two').check()
  await page.getByRole('group', { name: 'Second' }).getByLabel('Revision of MCP').selectOption('2024-11-05')
  await page.getByRole('heading', { name: '1 differ' }).waitFor()
  await page.getByText('Only the first sees 0').waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('what an endpoint offers is compared with what it offered before a change', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  await page.getByRole('button', { name: 'tickets__slow', exact: true }).waitFor()
  const policy = { default: 'allow', rules: [{ name: 'nothing-slow', effect: 'deny', what: { names: ['slow'] } }] }
  t.equal((await rig.call('PUT', '/v1/tenants/team/policy', { body: policy })).status, 201)
  await page.getByLabel('Compare two').check()
  await page.getByText('Only the first sees 0').waitFor()
  const moments = page.getByLabel('The first, as it is')
  await moments.locator('option').nth(1).waitFor({ state: 'attached' })
  const [, newest = ''] = await moments.locator('option').allInnerTexts()
  t.match(newest, /^before .*: version \d+, by platform$/)
  await moments.selectOption(newest)
  await page.getByText(/Only the first sees [2-9]/).waitFor()
  await page.getByText('notes__slow').waitFor()
  await page.getByLabel('Compare two').uncheck()
  await page.getByLabel('Compare two').check()
  await page.getByText('Only the first sees 0').waitFor()
  await moments.locator('option:checked', { hasText: 'now' }).waitFor({ state: 'attached' })
  await moments.selectOption(newest)
  await page.getByText('notes__slow').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await rig.call('DELETE', '/v1/tenants/team/policy', { headers: { 'If-Match': '*' } })
  t.same(complaints, [])
})

t.test('hosts are set up by what the page shows, and the way to the endpoint is examined', async (t) => {
  const { page, complaints } = await rig.signedIn('connect?tenant=acme&endpoint=support')
  const url = `${rig.publicUrl}/t/acme/support/mcp`
  await page.getByRole('heading', { name: 'VS Code' }).waitFor()
  await page.getByLabel('URL of the endpoint').getByText(url).waitFor()
  await page.getByRole('img', { name: `QR code of ${url}` }).waitFor()
  t.match(await page.getByRole('link', { name: 'Open in VS Code' }).getAttribute('href'), /^vscode:mcp\/install\?/)
  t.match(await page.getByLabel('Snippet for Cursor', { exact: true }).textContent(), 'YOUR_API_KEY')
  // What is chosen stays so while the next answer is on its way.
  const { promise: isKnown, resolve: known } = Promise.withResolvers<undefined>()
  await page.route('**/hosts?*', async (route) => {
    await isKnown
    await route.continue()
  })
  const asked = page.waitForRequest('**/hosts?*')
  await page.getByLabel('System').selectOption('Windows')
  await asked
  t.equal(await page.getByLabel('Hosts use').locator('option:checked').innerText(), 'an API key')
  known(undefined)
  await page.getByLabel('Hosts use').selectOption('their own login')
  await page.getByLabel('Snippet for Cursor', { exact: true }).filter({ hasNotText: 'YOUR_API_KEY' }).waitFor()
  await page.getByRole('button', { name: 'Examine' }).click()
  await page.getByText('What to do, at the side of the host').waitFor()
  await page.getByLabel('API key or token').fill(apiKey)
  await page.keyboard.press('Enter')
  await page.getByText('All hops that were tried are well.').waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})
