// Lists that are longer than a page of them, in a real browser: read on to their end, which is said.

import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

const headers = { 'If-Match': '*' }

t.test('every open session can be found, and who is told of a change is named before it is made', async (t) => {
  const oldest = await legacyClient(rig.url(), apiKey, '2025-06-18')
  for (let opened = 0; opened < 210; opened += 30)
    await Promise.all(Array.from({ length: 30 }, () => legacyClient(rig.url(), apiKey)))
  const { page, complaints } = await rig.signedIn('people?tenant=acme')
  const sessions = page.getByRole('region', { name: 'Sessions' })
  await sessions.getByText('200 of 200 shown').waitFor()
  const row = sessions.getByRole('row').filter({ hasText: '2025-06-18' })
  t.equal(await row.count(), 0, 'it is on the second page')
  await sessions.getByRole('button', { name: 'Show more' }).focus()
  await page.keyboard.press('Enter')
  await row.waitFor()
  await sessions.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })
  await sessions.locator('.table-scroll:focus').waitFor()
  await row.getByRole('button', { name: 'End: test' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await row.waitFor({ state: 'detached' })
  t.equal((await oldest.request('ping')).status, 404)

  await page.goto(`${rig.adminUrl}/console/#/tenants?tenant=team&endpoint=default`)
  await page.getByLabel('tickets/echo', { exact: true }).uncheck()
  await page.getByRole('button', { name: 'See what it changes' }).click()
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  await plan.locator('summary', { hasText: 'Which sessions' }).click()
  const told = plan.getByRole('table', { name: 'Which sessions' }).getByRole('row')
  await told.filter({ hasText: /^tom\s*raw 1\s*2025-11-25\s*\S/ }).waitFor()
  t.equal(await told.count(), 2, 'his, and the heads')
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('the history of a tenant is read to its end, which says what is kept', async (t) => {
  const patch = (origins: string[] | null) => rig.call('PATCH', '/v1/tenants/team', { body: { origins }, headers })
  for (let changed = 0; changed < 22; changed++) await patch([`https://n${changed}.example`])
  for (const method of ['PUT', 'DELETE', 'PUT', 'DELETE'])
    await rig.call(method, '/v1/tenants/team/kills/upstreams/notes')
  const { page, complaints } = await rig.signedIn('tenants', adminKeys.platform)
  // The list may come before the tenant itself: it stays, and is read once.
  const { promise: isListed, resolve: listed } = Promise.withResolvers<undefined>()
  await page.route('**/v1/tenants/team', async (route) => {
    await isListed
    await route.continue()
  })
  const asked: string[] = []
  page.on('request', (request) => void (/\/v1\/versions/.test(request.url()) && asked.push(request.url())))
  await page.goto(`${rig.adminUrl}/console/#/tenants?tenant=team`)
  const history = page.getByRole('region', { name: 'History' })
  const rows = history.getByRole('rowheader')
  await rows.nth(19).waitFor()
  listed(undefined)
  await history
    .getByRole('button', { name: /^Restore: / })
    .nth(19)
    .waitFor({ state: 'detached' })
  t.equal(await rows.count(), 20)
  t.equal(asked.length, 1, asked.join())
  t.equal(await history.getByText('The last twenty changes of each tenant').count(), 0)
  await history.getByRole('button', { name: 'Show more' }).click()
  await history.getByText('The last twenty changes of each tenant').waitFor()
  t.equal(await rows.count(), 24)
  t.equal(await history.getByRole('button', { name: 'Show more' }).count(), 0)
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
  await patch(null)
})

t.test('all records of a kind and time are downloaded, also those that are not shown', async (t) => {
  for (let made = 0; made < 240; made += 40)
    await Promise.all(Array.from({ length: 40 }, () => rig.ada.request('tools/call', { name: 'tickets__echo' })))
  const { page, complaints } = await rig.signedIn('audit?tenant=acme&kind=call', adminKeys.auditor)
  const rows = page.getByRole('table').getByRole('rowheader')
  await rows.first().waitFor()
  t.equal(await rows.count(), 100)
  const begun = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download all of this kind and time' }).click()
  const download = await begun
  t.equal(download.suggestedFilename(), 'audit-acme.jsonl')
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
  t.ok(lines.length > 240, `${lines.length} records`)
  const kept: unknown[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const { json } = await rig.call(
      'GET',
      `/v1/tenants/acme/audit?kind=call&limit=200&cursor=${cursor}`.replace(/&cursor=$/, '')
    )
    const answer = json as { items: unknown[]; nextCursor: string | null }
    kept.push(...answer.items)
    cursor = answer.nextCursor
  }
  t.same(
    lines.map((line) => JSON.parse(line) as unknown),
    kept.toReversed()
  )
  await page.route('**/audit/export?*', (route) => route.fulfill({ status: 409, json: { detail: 'Not now.' } }))
  await page.getByRole('button', { name: 'Download all of this kind and time' }).click()
  await page.getByRole('alert').getByText('Not now.').waitFor()
  t.match(complaints.splice(0), [/status of 409/])
  t.same(await violationsInBothThemes(page), [])
})
