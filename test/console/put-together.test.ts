// An endpoint that there is not yet is put together in a real browser: its tools ticked, however many, before anything
// is applied.

import t from 'tap'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

const headers = { 'If-Match': '*' }

t.test('an endpoint is made, ticked and renamed in one plan, of hundreds of tools and without a prefix', async (t) => {
  const tools = Array.from({ length: 450 }, (_, at) => ({
    name: `tool${String(at).padStart(3, '0')}`,
    inputSchema: { type: 'object' }
  }))
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  t.equal((await rig.call('PUT', '/v1/tenants/team/upstreams/many', { body: { url: upstream.url } })).status, 201)
  const { page, complaints } = await rig.signedIn('tenants?tenant=team')
  await page.getByRole('button', { name: 'Make an endpoint' }).click()
  await page.getByLabel('Endpoint', { exact: true }).fill('desk')
  await page.keyboard.press('Enter')
  await page.getByText('Tick an upstream to see its tools.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Remove', exact: true }).count(), 0, 'there is none yet')
  for (const name of ['tickets', 'many']) await page.getByRole('checkbox', { name, exact: true }).check()
  await page.getByLabel('Prefix of many').selectOption('none')
  await page.getByLabel('Prefix of tickets').selectOption('its own')
  await page.getByLabel('Own prefix of tickets').fill('help')
  const moveUp = page.getByRole('button', { name: 'Move many up' })
  await moveUp.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Move many up' }).and(page.locator('[aria-disabled="true"]:focus')).waitFor()

  const box = (id: string) => page.getByLabel(id, { exact: true })
  await box('tickets/fail').uncheck()
  t.equal(await page.getByLabel('Name of tickets/echo').getAttribute('placeholder'), 'help__echo')
  await page.getByRole('searchbox', { name: 'Filter tools' }).fill('tool')
  t.equal(await box('many/tool449').count(), 0, 'so many are not drawn at once')
  for (let pages = 0; pages < 2; pages++) await page.getByRole('button', { name: 'Show more' }).first().click()
  await box('many/tool449').uncheck()
  await page.getByLabel('Name of many/tool000').fill('first')
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'See what it changes' }).click()
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  await plan.getByText('The endpoint desk is made.').waitFor()
  await plan.getByRole('button', { name: 'Apply' }).click()
  await plan.waitFor({ state: 'detached' })
  const made = await rig.call('GET', '/v1/tenants/team/endpoints/desk')
  t.match((made.json as { configuration: unknown }).configuration, {
    upstreams: [
      { upstream: 'many', prefix: '' },
      { upstream: 'tickets', prefix: 'help' }
    ],
    deny: { tools: ['tickets/fail', 'many/tool449'] },
    tools: { 'many/tool000': { rename: 'first' } }
  })
  const offered = await until('it offers them', async () => {
    const { json } = await rig.call('POST', '/v1/tenants/team/endpoints/desk/catalog', {
      body: { limit: 200, withoutRules: true }
    })
    const { items, count } = json as { items: Array<{ name: string }>; count: number }
    return items.some(({ name }) => name === 'help__echo') ? { names: items.map(({ name }) => name), count } : undefined
  })
  t.match(offered.names, ['first'])
  t.notOk(offered.names.includes('help__fail'))
  await page.getByRole('button', { name: 'Remove', exact: true }).waitFor()
  await page.getByLabel('Prefix of many').and(page.locator('select')).waitFor()
  t.equal(await page.getByLabel('Prefix of many').inputValue(), 'none')
  t.same(complaints, [])
  await rig.call('DELETE', '/v1/tenants/team/endpoints/desk', { headers })
  await rig.call('DELETE', '/v1/tenants/team/upstreams/many', { headers })
})
