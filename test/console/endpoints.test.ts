// What an endpoint offers and to whom, in a real browser: ticked where rules let nobody see it, seen as a described
// caller, tried with what its schema says, and counted by rules while one looks.

import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

const headers = { 'If-Match': '*' }

/** The policy of team, for as long as the test goes on. */
async function withPolicy(t: Test, policy: object): Promise<void> {
  const remove = () => rig.call('DELETE', '/v1/tenants/team/policy', { headers })
  await remove()
  const put = await rig.call('PUT', '/v1/tenants/team/policy', { body: policy })
  t.equal(put.status, 201, put.text)
  t.teardown(remove)
}

async function newKey(name: string): Promise<string> {
  const { json } = await rig.call('POST', '/v1/tenants/team/keys', { body: { name } })
  return (json as { key: string }).key
}

t.test('where rules let nobody see anything, an administrator ticks all the same', async (t) => {
  await withPolicy(t, { default: 'deny', rules: [] })
  const seen = await rig.call('POST', '/v1/tenants/team/endpoints/default/catalog', { body: {} })
  t.match(seen.json, { items: [], count: 0 }, 'nobody sees anything')
  const { page, complaints } = await rig.signedIn('tenants?tenant=team&endpoint=default')
  await page.getByLabel('tickets/echo', { exact: true }).uncheck()
  await page.getByRole('button', { name: 'See what it changes' }).click()
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  await plan.getByText(/^Callers of default lose 1 tool/).waitFor()
  t.match(await plan.innerText(), 'tickets__echo')
  t.same(complaints, [])
})

t.test('what somebody else has changed since the page was read is not undone', async (t) => {
  const patch = (body: object) => rig.call('PATCH', '/v1/tenants/team', { body, headers })
  t.teardown(() => patch({ origins: null, endpoints: null }))
  const { page, complaints } = await rig.signedIn('tenants?tenant=team&endpoint=default')
  const box = page.getByLabel('tickets/echo', { exact: true })
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  const apply = plan.getByRole('button', { name: 'Apply' })
  const see = async () => {
    await box.uncheck()
    await page.getByRole('button', { name: 'See what it changes' }).click()
  }
  await box.waitFor()
  await box.uncheck()
  t.equal((await patch({ origins: ['https://first.example'] })).status, 200)
  await see()
  await plan.getByText('The tenant team has been changed meanwhile: this would undo it.').waitFor()
  t.ok(await apply.isDisabled())
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await box.and(page.locator(':checked')).waitFor()
  await see()
  await plan.getByText(/^Callers of default lose 1 tool/).waitFor()
  t.equal((await patch({ origins: ['https://second.example'] })).status, 200)
  await apply.click()
  await plan.getByText('The configuration has changed since that version.').waitFor()
  await plan.getByText('The tenant team has been changed meanwhile').waitFor()
  t.match(complaints.splice(0), [/status of 412/])
  await page.keyboard.press('Escape')
  await box.and(page.locator(':checked')).waitFor()
  await see()
  await apply.click()
  await plan.waitFor({ state: 'detached' })
  t.match((await rig.call('GET', '/v1/tenants/team')).json, {
    configuration: {
      origins: ['https://second.example'],
      endpoints: { default: { deny: { tools: ['tickets/echo'] } } }
    }
  })
  t.same(complaints, [])
})

t.test('a described caller has an issuer and a client, too', async (t) => {
  const rule = (name: string, who: object) => ({ name, effect: 'allow', who, what: { names: [name] } })
  await withPolicy(t, {
    default: 'deny',
    rules: [rule('echo', { clients: ['desk'] }), rule('pid', { issuers: ['https://idp.example'] })]
  })
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  await page.getByText('No tool is offered to this caller').waitFor()
  await page.getByLabel('Caller').selectOption('by a token')
  await page.getByLabel('Client', { exact: true }).fill('desk')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'tickets__echo' }).waitFor()
  t.equal(await page.getByRole('button', { name: 'tickets__pid' }).count(), 0)
  await page.getByLabel('Issuer', { exact: true }).fill('https://idp.example')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'tickets__pid' }).waitFor()
  t.same(complaints, [])
})

t.test('a form begins with the defaults of its schema, and says no where no is meant', async (t) => {
  const inputSchema = {
    type: 'object',
    required: ['sure'],
    properties: {
      count: { type: 'integer', default: 3 },
      mode: { type: 'string', enum: ['fast', 'slow'], default: 'slow' },
      tags: { type: 'array', items: { type: 'string' }, default: ['a'] },
      sure: { type: 'boolean' },
      loud: { type: 'boolean' },
      note: { type: 'string' }
    }
  }
  const upstream = await startUpstream({ tools: [{ name: 'echo', inputSchema }] })
  t.teardown(() => upstream.close())
  const put = await rig.call('PUT', '/v1/tenants/team/upstreams/formed', { body: { url: upstream.url } })
  t.equal(put.status, 201, put.text)
  t.teardown(() => rig.call('DELETE', '/v1/tenants/team/upstreams/formed', { headers }))
  const credential = await newKey('form')
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  await page.getByRole('button', { name: 'formed__echo' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Try it' }).click()
  await dialog.getByLabel('Your API key or token').fill(credential)
  await page.keyboard.press('Enter')
  const answered = (args: object) => dialog.locator('pre').getByText(JSON.stringify(args), { exact: true }).waitFor()
  await answered({ count: 3, mode: 'slow', tags: ['a'], sure: false })
  await dialog.getByLabel('sure *').check()
  await dialog.getByLabel('loud').selectOption('false')
  await dialog.getByRole('button', { name: 'Call it' }).click()
  await answered({ count: 3, mode: 'slow', tags: ['a'], sure: true, loud: false })
  t.same(complaints, [])
})

t.test('a schema that is none takes no page down', async (t) => {
  const noWords = { toString: 1 }
  const properties = {
    nothing: null,
    list: { enum: 'x', anyOf: 'x', description: noWords },
    type: { type: noWords },
    forms: { oneOf: [{ type: 'string' }, { type: 'number' }], title: 'Either' },
    choice: { oneOf: [{ const: 'a', title: 'The first' }, { const: 'b' }] }
  }
  const inputSchema = { type: 'object', required: {}, properties }
  const upstream = await startUpstream({ tools: [{ name: 'echo', inputSchema }] })
  t.teardown(() => upstream.close())
  const put = await rig.call('PUT', '/v1/tenants/team/upstreams/odd', { body: { url: upstream.url } })
  t.equal(put.status, 201, put.text)
  t.teardown(() => rig.call('DELETE', '/v1/tenants/team/upstreams/odd', { headers }))
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  await page.getByRole('button', { name: 'odd__echo' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('{"toString":1}').first().waitFor()
  await dialog.getByRole('button', { name: 'Try it' }).click()
  await dialog.getByLabel('choice').waitFor()
  t.same(await dialog.getByLabel('choice').locator('option').allInnerTexts(), ['–', 'The first', 'b'])
  t.equal(await dialog.getByRole('textbox', { name: 'forms' }).count(), 1, 'forms are no choice')
  t.same(complaints, [])
})

t.test('what rules cover and whom they are about is counted anew while the page is open', async (t) => {
  await withPolicy(t, { default: 'allow', rules: [{ name: 'late', effect: 'deny', who: { keys: ['late'] } }] })
  const key = await newKey('late')
  const { page, complaints } = await rig.signedIn('policy?tenant=team')
  const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'late' }) })
  await row.waitFor()
  t.match(await row.innerText(), /\s0$/, 'it is about nobody yet')
  await page.getByRole('button', { name: 'late' }).click()
  const dialog = page.getByRole('dialog', { name: 'Rule late' })
  await dialog.getByText('It applies to 0 callers of today').waitFor()
  const late = await legacyClient(rig.url('default', 'team'), key)
  await late.request('tools/call', { name: 'tickets__echo', arguments: {} })
  await dialog.getByText('It applies to 1 caller of today').waitFor()
  await page.keyboard.press('Escape')
  t.match(await row.innerText(), /\s1$/)
  t.same(complaints, [])
})
