// The main task of each page, by mouse or by keyboard, against a real gateway; and that everybody can read them.

import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { endedCalls, violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('the overview says what is wrong, and its plots are zoomed into together', async (t) => {
  const { page, complaints } = await rig.signedIn('overview?tenant=acme')
  await page.getByText(/^files of acme: down for .* calls? failed; last error: /).waitFor()
  await page.getByRole('figure').nth(3).waitFor()
  t.equal(await page.getByRole('figure').count(), 4)
  await page.getByRole('combobox', { name: 'By' }).selectOption('tool')
  await page.getByText('tickets/echo').first().waitFor()
  t.same(await violationsInBothThemes(page), [])

  for (const quantile of ['p50', 'p99']) {
    await page.getByRole('combobox', { name: 'Quantile' }).selectOption(quantile)
    const plot = page.getByRole('figure', { name: `Duration, one by one: ${quantile}` })
    await plot.getByText('tickets/echo').first().waitFor()
  }

  const [first] = await page.locator('.u-over').all()
  const box = await first?.boundingBox()
  const showAll = page.getByRole('button', { name: 'Show all' })
  t.equal(await showAll.isDisabled(), true)
  await page.mouse.move((box?.x ?? 0) + 60, (box?.y ?? 0) + 40)
  await page.mouse.down()
  await page.mouse.move((box?.x ?? 0) + 160, (box?.y ?? 0) + 40, { steps: 4 })
  await page.mouse.up()
  await page.getByRole('button', { name: 'Show all', disabled: false }).waitFor()
  await showAll.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Show all', disabled: true }).waitFor()
  await page.goto(`${rig.adminUrl}/console/#/overview`)
  await page.reload()
  await page.getByRole('table', { name: 'Processes' }).getByText('answers').waitFor()
  await page.getByText('Connections of clients').waitFor()
  const loaded = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
  const bytes = await page.evaluate<number>(`${loaded}.reduce((sum, each) => sum + each.encodedBodySize, 0)`)
  t.ok(
    bytes > 20_000 && bytes < 150 * 1024,
    `all that the first page takes, answers of the API included: ${bytes} bytes`
  )
  t.same(await violationsInBothThemes(page), [])
  await page.goto(`${rig.adminUrl}/console/#/overview?tenant=acme`)
  await page.getByRole('link', { name: 'Open files' }).click()
  await page.getByRole('heading', { name: 'files' }).waitFor()
  t.same(complaints, [])
})

t.test('calls are shown as they end, found by any word, held still, and opened by the keyboard', async (t) => {
  const { page, complaints } = await rig.signedIn('live')
  await page.getByText('Listening').waitFor()
  await rig.traffic()
  await page.getByRole('rowheader', { name: 'notes/echo' }).waitFor()
  await page.getByRole('searchbox').fill('fail')
  const rows = page.getByRole('table').getByRole('rowheader')
  await until('what has the word is there alone', async () => (await rows.allInnerTexts()).join() === 'tickets/fail')
  await page.getByRole('button', { name: 'Pause' }).focus()
  await page.keyboard.press('Enter')
  await rig.traffic()
  await page.getByText(/^Paused, [1-9]/).waitFor()
  t.equal(await rows.count(), 1)
  await page.locator('td button').first().focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Call of fail' })
  await dialog.getByText('Upstream and user').waitFor()
  t.match(await dialog.innerText(), /API key\s+test[^]*tool_error/)
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.locator('td button:focus').waitFor()
  t.pass('the focus is where it was')
  t.same(complaints, [])
})

t.test('on a narrow screen a call shows when, what and how it ended', async (t) => {
  const { page, complaints } = await rig.signedIn('live', undefined, { viewport: { width: 360, height: 740 } })
  await page.getByText('Listening').waitFor()
  await rig.traffic()
  const row = endedCalls(page).getByRole('row').filter({ hasText: 'files/' }).first()
  await row.waitFor()
  const seen = [row.getByRole('button'), row.getByRole('rowheader'), row.locator('.mark')]
  for (const each of seen) {
    const box = await each.boundingBox()
    t.ok(box !== null && box.width > 20 && box.x >= 0 && box.x + box.width <= 360, await each.innerText())
  }
  t.match(await row.innerText(), /^[\d:]+\s+files\/read\s+upstream_unavailable$/, 'in this order, and nothing else')
  t.same(await violationsInBothThemes(page), [])
  await row.getByRole('button').click()
  t.match(await page.getByRole('dialog').innerText(), /Tenant\s+acme/, 'the rest is told of the call')
  t.same(complaints, [])
})

t.test('an endpoint is put together by ticking, its plan says who loses what, and it is taken back', async (t) => {
  const tools = async (): Promise<string[]> => {
    const { json } = await rig.tom.request('tools/list')
    return json.result.tools.map(({ name }: { name: string }) => name)
  }
  await until('tools are listed', async () => (await tools()).includes('tickets__echo'))
  const { page, complaints } = await rig.signedIn('tenants?tenant=team&endpoint=default')
  await page.getByLabel('tickets/echo', { exact: true }).uncheck()
  await page.getByLabel('Name of tickets/pid').fill('which_process')
  await page.getByRole('button', { name: 'Move notes up' }).focus()
  await page.keyboard.press('Enter')
  t.same(await violationsInBothThemes(page), [])
  const versions = page.getByRole('button', { name: /^Compare: / })
  await versions.first().waitFor()
  const listed = await versions.count()
  await page.getByRole('button', { name: 'See what it changes' }).click()
  const plan = page.getByRole('dialog', { name: 'What this change does' })
  await plan.getByText(/^Callers of default lose 2 tools/).waitFor()
  t.match(await plan.innerText(), /tickets__echo[^]*notified at once|notified at once[^]*tickets__echo/)
  t.ok((await tools()).includes('tickets__echo'), 'nothing has changed yet')
  await plan.getByRole('button', { name: 'Apply' }).click()
  await plan.waitFor({ state: 'detached' })
  await until('callers see it', async () => !(await tools()).includes('tickets__echo'))
  t.ok((await tools()).includes('which_process'))

  // The new version is in the list of them.
  await versions.nth(listed).waitFor()
  await versions.nth(1).focus()
  await page.keyboard.press('Enter')
  const compared = page.getByRole('dialog', { name: 'Two versions of team' })
  await compared.getByText('endpoints.default.tools.tickets/pid.rename').waitFor()
  await compared.getByText('"which_process"').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await compared.getByLabel('From version').selectOption({ index: 0 })
  await compared.getByText('They are alike.').waitFor()
  await page.keyboard.press('Escape')
  await page
    .getByRole('button', { name: /^Restore: / })
    .first()
    .focus()
  await page.keyboard.press('Enter')
  const back = page.getByRole('dialog', { name: /^Restore version \d+$/ })
  await back.getByText(/^Callers of default gain 2 tools/).waitFor()
  t.same(await violationsInBothThemes(page), [])
  const headers = { 'If-Match': '*' }
  await rig.call('PATCH', '/v1/tenants/team', { body: { origins: ['https://meanwhile.example'] }, headers })
  const takeUp = back.getByRole('button', { name: 'Restore' })
  await takeUp.click()
  await page.getByText(/^The configuration has changed since that version/).waitFor()
  t.notOk((await tools()).includes('tickets__echo'), 'somebody was first: nothing was taken up')
  t.match(complaints.splice(0), [/status of 412/], 'the browser says so, too')
  await back.getByText(/^Callers of default gain 2 tools/).waitFor()
  await takeUp.click()
  await until('it is as before', async () => (await tools()).includes('tickets__echo'))
  t.same(complaints, [])
})

t.test('a tool is stopped with what that hits, taken back, and a session is ended', async (t) => {
  const { page, complaints } = await rig.signedIn('people?tenant=acme')
  const call = async () => (await rig.ada.request('tools/call', { name: 'tickets__echo', arguments: {} })).json
  t.match(await call(), { result: {} })
  await page.getByLabel('Upstream', { exact: true }).fill('tickets')
  await page.getByLabel('Tool', { exact: true }).fill('echo')
  await page.getByRole('button', { name: 'See what it hits' }).click()
  await page.getByText(/^[1-9]\d* calls? of the last hour at this process would have been refused/).waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'Stop it now' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Take back: tickets / echo' }).waitFor()
  t.match(await call(), { error: {} })
  await page.getByRole('button', { name: 'Take back: tickets / echo' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click()
  await page.getByText('Nothing is stopped').waitFor()
  t.match(await call(), { result: {} })

  const seen = page.getByRole('table', { name: 'Who called today' }).getByRole('row')
  await seen.filter({ hasText: 'API key' }).getByText('raw 1').waitFor()
  const own = await legacyClient(rig.url(), apiKey, '2025-03-26')
  await page.reload()
  const row = page.getByRole('row').filter({ hasText: '2025-03-26' })
  await row.getByRole('button', { name: /^End: / }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await row.waitFor({ state: 'detached' })
  await page.locator('h1:focus').waitFor()
  t.equal((await own.request('tools/list')).status, 404)
  t.equal((await rig.ada.request('tools/list')).status, 200, 'others go on')
  t.same(complaints, [])
})

t.test('everybody sees what their role may see, and nobody is offered what it may not do', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams', adminKeys.globexViewer)
  await page.getByRole('link', { name: 'notes' }).click()
  await page.getByRole('heading', { name: 'notes' }).waitFor()
  t.equal(await page.getByRole('button', { name: /Reconnect|Restart|Add/ }).count(), 0)
  const offered = page.getByRole('combobox', { name: 'Tenant' }).locator('option')
  await offered.nth(1).waitFor({ state: 'attached' })
  t.same(await offered.allInnerTexts(), ['Choose a tenant', 'globex'])
  await page.getByRole('link', { name: 'People and connections' }).click()
  await page.getByRole('heading', { name: 'Kill switches' }).waitFor()
  t.equal(await page.getByRole('button', { name: /End|Revoke|See what it hits/ }).count(), 0)
  t.same(complaints, [])
  await page.goto(`${rig.adminUrl}/console/#/upstreams?tenant=acme`)
  await page.getByText('There is no such tenant, or this key is not for it.').first().waitFor()
})

/** What each page shows once its data is there, and the dialogs that it opens. */
const measured: ReadonlyArray<readonly [place: string, data: string, open: string | undefined]> = [
  ['overview', '.plot canvas', undefined],
  ['live', '.calls td button', '.calls td button'],
  ['upstreams?tenant=acme', 'main a', undefined],
  ['tenants?tenant=team&endpoint=default', '.members code', 'section.card button.main'],
  ['people?tenant=acme', 'main tbody td button', 'main tbody td button'],
  ['catalog?tenant=team', 'main tbody button', 'main tbody button'],
  ['policy?tenant=team', 'main h2', undefined],
  ['audit?tenant=acme', 'main tbody td button', 'main tbody td button'],
  ['connect?tenant=team', 'main pre', undefined]
]

t.test('from 360 pixels to 4K nothing is wider than the screen but tables, which scroll by themselves', async (t) => {
  const { page } = await rig.signedIn('overview')
  for (const [width, height] of [
    [360, 740],
    [3_840, 2_160]
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const [name, data, open] of measured) {
      await rig.goTo(page, name)
      if (name === 'live') {
        await page.getByText('Listening').waitFor()
        await rig.traffic()
      }
      await page.locator(data).first().waitFor()
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} at ${width}`)
      const narrow = "[...document.querySelectorAll('main p')].filter((each) => each.offsetWidth > 1600).length"
      t.equal(await page.evaluate(narrow), 0, `lines of ${name} at ${width} are short enough to be read`)
      if (open === undefined) continue
      await page.locator(open).first().click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('Loading …').first().waitFor({ state: 'detached' })
      const box = await dialog.boundingBox()
      t.ok(box !== null && box.x >= 0 && box.x + box.width <= width, `the dialog of ${name} at ${width}`)
      const wide =
        "[...document.querySelectorAll('.dialog-body')].filter((each) => each.scrollWidth > each.clientWidth).length"
      t.equal(await page.evaluate(wide), 0, `nothing in the dialog of ${name} at ${width} is wider than it`)
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
  }
})
