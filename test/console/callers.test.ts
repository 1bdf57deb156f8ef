// Who calls and what, in a real browser: calls found by what is shown of them, and what a kill switch says that it hits.

import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { until } from '../kit/until.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('a call is found by what a person sees of it, with its steps, and not by names of members', async (t) => {
  const { page, complaints } = await rig.signedIn('live?tenant=acme')
  await page.getByText('Listening').waitFor()
  const progressing = { name: 'tickets__progress', arguments: {}, _meta: { progressToken: 'p' } }
  await rig.ada.request('tools/call', progressing)
  await rig.ada.request('tools/call', { name: 'tickets__echo', arguments: {} })
  const rows = page.getByRole('table').getByRole('rowheader')
  const shown = async () => (await rows.allInnerTexts()).join(' ')
  await until('both are there', async () => (await shown()) === 'tickets/echo tickets/progress')
  const filter = page.getByRole('searchbox')
  for (const [words, found] of [
    ['notifications/progress', 'tickets/progress'],
    ['TICKETS/echo test', 'tickets/echo'],
    ['acme/default', 'tickets/echo tickets/progress']
  ] as const) {
    await filter.fill(words)
    await until(words, async () => (await shown()) === found)
  }
  for (const words of ['object', 'waitms', 'apikey', 'null', 'undefined']) {
    await filter.fill(words)
    await page.getByText('No call matches the filter').waitFor()
    await filter.fill('')
    await rows.first().waitFor()
  }
  t.same(complaints, [])
})

t.test('the focus stays where somebody chooses', async (t) => {
  const { page, complaints } = await rig.signedIn('overview')
  const choose = async (place: string, label: string, key: string, address: RegExp) => {
    await rig.goTo(page, place)
    const choice = page.getByRole('combobox', { name: label })
    await choice.focus()
    await page.keyboard.press(key)
    await page.waitForURL(address)
    await page.locator('main h2, main table').first().waitFor()
    await page.getByText('Loading …').first().waitFor({ state: 'detached' })
    t.equal(await choice.and(page.locator(':focus')).count(), 1, `${label} of ${place}`)
  }
  await choose('connect?tenant=acme&endpoint=support', 'Endpoint', 'ArrowUp', /endpoint=default/)
  await choose('connect?tenant=acme&endpoint=support', 'Hosts use', 'ArrowUp', /with=login/)
  await choose('connect?tenant=acme&endpoint=support', 'System', 'ArrowDown', /platform=darwin/)
  await choose('catalog?tenant=acme&endpoint=support', 'Endpoint', 'ArrowUp', /endpoint=default/)
  await choose('catalog?tenant=acme&endpoint=support', 'Show', 'ArrowDown', /kind=prompt/)
  await choose('people?tenant=acme', 'Tenant', 'ArrowDown', /tenant=globex/)
  await page.getByRole('link', { name: 'Audit' }).click()
  await page.locator('h1:focus').getByText('Audit').waitFor()
  t.same(complaints, [])
})

t.test('a tenant that is made can be chosen at once', async (t) => {
  t.teardown(() => rig.call('DELETE', '/v1/tenants/fresh', { headers: { 'If-Match': '*' } }))
  const { page, complaints } = await rig.signedIn('tenants')
  const fresh = page.getByRole('combobox', { name: 'Tenant' }).locator('option', { hasText: 'fresh' })
  await page.getByRole('button', { name: 'Make a tenant' }).click()
  await page.getByLabel('Name', { exact: true }).fill('fresh')
  t.equal(await fresh.count(), 0)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Apply' }).click()
  await fresh.waitFor({ state: 'attached' })
  t.same(complaints, [])
})

t.test('what a kill switch says of keys, persons and rare tools is so', async (t) => {
  const { page, complaints } = await rig.signedIn('people?tenant=acme')
  const dialog = page.getByRole('dialog')
  const ask = async (kind: string, parts: Readonly<Record<string, string>>) => {
    await page.locator('form.stop select').selectOption(kind)
    for (const [label, value] of Object.entries(parts)) await page.getByLabel(label, { exact: true }).fill(value)
    await page.getByRole('button', { name: 'See what it hits' }).click()
    await dialog.getByText('At every process within a second').waitFor()
  }
  const close = async () => {
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }
  const table = page.getByRole('table', { name: 'Who called today' })
  await table.getByRole('rowheader', { name: 'test' }).waitFor()
  await ask('API key', { 'Name of the key': 'test' })
  await dialog.getByText(/^[1-9][\d,]* calls since \d.* at this process would have been refused\.$/).waitFor()
  await dialog.getByText(/^[1-9]\d* open sessions? ends?\.$/).waitFor()
  await close()
  await ask('person', { Issuer: 'urn:gatehouse:key', Subject: 'test' })
  await dialog.getByText(/^[1-9][\d,]* calls since \d.* at this process would have been refused\.$/).waitFor()
  await close()
  await ask('person', { Issuer: 'https://idp.example', Subject: 'test' })
  await dialog.getByText('This process remembers no call of it today').waitFor()
  await dialog.getByText('0 open sessions end.').waitFor()
  await close()

  // It was called less than twenty others, which are all that is told of many.
  const busier = ['echo', 'progress', 'fail', 'rpcerror', 'log', 'pid', 'env', 'touch', 'withdraw', 'release']
  const names = ['tickets', 'slow'].flatMap((upstream) => busier.map((name) => `${upstream}__${name}`))
  const calls = [...names, ...names, ...names, 'tickets__content']
  await Promise.all(calls.map((name) => rig.ada.request('tools/call', { name, arguments: {} })))
  const { json } = await rig.call('GET', '/v1/tenants/acme/series?by=tool&top=20')
  t.notMatch(JSON.stringify(json), 'tickets/content')
  await ask('tool', { Upstream: 'tickets', Tool: 'content' })
  await dialog.getByText(/^[1-9]\d* calls? of the last hour at this process would have been refused\.$/).waitFor()
  await close()
  await ask('tool', { Upstream: 'tickets', Tool: 'crash' })
  await dialog.getByText('0 calls of the last hour at this process would have been refused.').waitFor()
  await close()
  await ask('the whole tenant', {})
  await dialog.getByText(/^[1-9][\d,]* calls of the last hour at this process would have been refused\.$/).waitFor()
  t.same(complaints, [])
})

t.test('what stops with an upstream, and what leads to the same server and goes on, is said', async (t) => {
  const { url } = rig.tickets
  const add = async (name: string) =>
    t.equal((await rig.call('PUT', `/v1/tenants/team/upstreams/${name}`, { body: { url } })).status, 201)
  for (const name of ['one', 'twin']) await add(name)
  const { page, complaints } = await rig.signedIn('people?tenant=team', adminKeys.platform)
  await page.locator('form.stop select').selectOption('upstream')
  await page.getByLabel('Upstream', { exact: true }).fill('one')
  await page.getByRole('button', { name: 'See what it hits' }).click()
  await page.getByRole('button', { name: 'Stop it now' }).click()
  // The tickets of this team lead there from the beginning.
  const said = 'At the same server, and not stopped: tickets, twin.'
  await page.getByRole('status').getByText(`one is stopped. ${said}`).waitFor()
  const row = page.getByRole('table', { name: 'Kill switches' }).getByRole('row').filter({ hasText: 'one' })
  await row.getByText(said).waitFor()
  await add('again')
  await page.reload()
  await row.getByText('Stopped with it: again.').waitFor()
  await row.getByText(said).waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})
