// What rules do and what was recorded, in a real browser: each page's main task, and what a viewer does not see.

import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('rules are shown with what they cover now, and a question is asked and answered by the keyboard', async (t) => {
  const rules = [
    { name: 'echo-for-all', effect: 'allow', what: { names: ['echo'] } },
    { name: 'nothing', effect: 'deny', what: { names: ['<b>none</b>'] } },
    { name: 'small-amounts', effect: 'allow', who: { keys: ['tom'] }, what: { kinds: ['tool'] }, when: 'args.n < 5' }
  ]
  const put = await rig.call('PUT', '/v1/tenants/team/policy', { body: { default: 'deny', rules } })
  t.match(put, { status: /^20[01]$/ }, put.text)
  const { page, complaints } = await rig.signedIn('policy?tenant=team')
  const rowOf = (name: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) })
  await rowOf('echo-for-all').waitFor()
  await page.getByText('What no rule decides is denied.').waitFor()
  t.match(await rowOf('echo-for-all').innerText(), /allows\s+everybody\s+name echo\s+always\s+[2-9]\s+1$/)
  t.match(await rowOf('nothing').innerText(), /denies\s+everybody\s+name <b>none<\/b>\s+always\s+0\s+1$/)
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'echo-for-all' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Rule echo-for-all' })
  await dialog.getByText('tickets__echo').waitFor()
  await dialog.getByText('It applies to 1 caller of today').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  await page.getByLabel('What', { exact: true }).fill('tickets/pid')
  await page.keyboard.press('Enter')
  await page.getByText('Denied: no rule of the tenant allows it').waitFor()
  const caller = page.getByRole('group', { name: 'Who calls' }).getByLabel('Caller')
  await caller.locator('option').getByText('an API key').waitFor({ state: 'attached' })
  const asked = page.waitForRequest('**/explain')
  // Before the browser has drawn the choice: a person is slower, a program is not.
  await page.evaluate(`(async () => {
    const select = document.querySelector('fieldset.caller select')
    select.selectedIndex = 1
    select.dispatchEvent(new Event('change', { bubbles: true }))
    for (let turns = 0; turns < 5; turns++) await undefined
    select.form.requestSubmit()
  })()`)
  t.same((await asked).postDataJSON().caller, { key: 'tom' })
  await page.getByText('depends on its arguments').waitFor()
  await page.getByText('Arguments and time').click()
  await page.getByLabel('Arguments of the call').fill('{ "n": 3 }')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('Allowed: the rule small-amounts of the tenant allows it.').waitFor()
  await page.getByText('its condition holds').waitFor()
  await page.getByRole('button', { name: 'Keep as a test' }).focus()
  await page.keyboard.press('Enter')
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  await plan.getByRole('button', { name: 'Apply', disabled: false }).click()
  await page.getByText('1 test holds.').waitFor()
  t.match(await rowOf('tickets/pid').innerText(), /key tom\s+tickets\/pid \{"n":3\}\s+allowed\s+allowed/)
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
  // A browser complains of every answer that refuses something.
  await page.getByLabel('What', { exact: true }).fill('none/pid')
  await page.keyboard.press('Enter')
  await page.getByText('names no upstream of team').waitFor()
})

t.test('an answer that breaks off is said to, and nothing waits for it', async () => {
  const { page } = await rig.signedIn('audit?tenant=acme&since=foo')
  await page.getByRole('rowheader', { name: 'tickets__fail' }).first().waitFor()
  const broken = { contentType: 'text/event-stream', body: 'event: read\ndata: {"segments":1,"of":2}\n\n' }
  await page.route('**/audit/verification', (route) => route.fulfill(broken), { times: 1 })
  const verify = page.getByRole('button', { name: 'Verify' })
  await verify.click()
  await page.getByText('The connection ended before the whole answer came.').waitFor()
  await verify.click()
  await page.getByText('Nothing is missing or altered.').waitFor()

  const half = { contentType: 'application/json', body: '{"items":[' }
  await page.route('**/audit?*', (route) => route.fulfill(half), { times: 1 })
  await page.getByLabel('Kind').selectOption('session')
  const note = page.getByRole('alert').filter({ hasText: 'The gateway does not answer.' })
  await note.waitFor()
  await note.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('rowheader', { name: 'opened' }).first().waitFor()

  await page.route('**/pages/connect.js', (route) => route.abort(), { times: 1 })
  await page.getByRole('link', { name: 'Connect', exact: true }).click()
  await note.waitFor()
  await note.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'VS Code' }).waitFor()
  await page.route('**/doctor', (route) => route.fulfill({ ...broken, body: '' }), { times: 1 })
  await page.getByRole('button', { name: 'Examine' }).click()
  await page.getByText('The connection ended before the whole answer came.').waitFor()
})

t.test('a viewer asks what rules decide, and does not read them', async (t) => {
  const { page, complaints } = await rig.signedIn('policy?tenant=team', adminKeys.viewer)
  await page.getByText('Your role, viewer, does not read rules.').waitFor()
  t.equal(await page.getByText('Rules of the tenant').count(), 0)
  t.equal((await rig.call('GET', '/v1/tenants/team/endpoints/default/rules', { key: adminKeys.viewer })).status, 403)
  await page.getByLabel('What', { exact: true }).fill('tickets/echo')
  await page.keyboard.press('Enter')
  await page.getByText('Allowed: the rule echo-for-all of the tenant allows it.').waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('records are found by kind and time, opened by the keyboard, taken along, and verified', async (t) => {
  const { page, complaints } = await rig.signedIn('audit?tenant=acme', adminKeys.auditor)
  await page.getByRole('rowheader', { name: 'tickets__fail' }).first().waitFor()
  await page.getByLabel('Kind').selectOption('session')
  await page.getByRole('rowheader', { name: 'tickets__fail' }).first().waitFor({ state: 'detached' })
  await page.getByRole('rowheader', { name: 'opened' }).first().waitFor()
  await page.getByLabel('Kind').selectOption('call')
  await page.getByRole('rowheader', { name: 'tickets__fail' }).first().waitFor()
  t.same(await violationsInBothThemes(page), [])
  const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'tickets__fail' }) })
  await row.getByRole('button').first().focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Record: call' })
  await dialog.getByText('Hash of the one before').waitFor()
  t.match(await dialog.innerText(), /Outcome\s+tool_error/)
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  const begun = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download all of this kind and time' }).click()
  const lines = (await readFile(await (await begun).path(), 'utf8')).trimEnd().split('\n')
  const kept = await rig.call('GET', '/v1/tenants/acme/audit?kind=call&limit=200')
  t.same(
    lines.map((line) => JSON.parse(line) as unknown),
    (kept.json as { items: unknown[] }).items.toReversed()
  )
  await page.getByRole('button', { name: 'Verify' }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('Nothing is missing or altered.').waitFor()
  t.equal(await page.getByText('Signed by keys').count(), 0, 'all is signed by this gateway')
  t.same(await violationsInBothThemes(page), [])
  await page.getByLabel('Until').fill('2001-01-01T00:00')
  await page.getByText('No record', { exact: true }).waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('a viewer sees no records', async (t) => {
  const { page } = await rig.signedIn('audit?tenant=acme', adminKeys.viewer)
  await page.getByText('Your role, viewer, does not see this page.').waitFor()
  t.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0)
  t.equal(await page.getByRole('link', { name: 'Policy' }).count(), 1)
})
