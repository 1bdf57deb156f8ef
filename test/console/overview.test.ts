// The overview, in a real browser: plots by the keyboard, dates where they span days, a focus that stays, limits of a
// tenant, and processes that differ.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Page } from 'playwright-core'
import t from 'tap'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { listen } from '../kit/listen.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { consoleRig, violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

const moment = String.raw`\d\d:\d\d:\d\d`

t.test('a plot is read, and all of them are zoomed into and out again, by the keyboard', async (t) => {
  const { page, complaints } = await rig.signedIn('overview?tenant=acme')
  const [first, last] = [
    page.getByRole('slider', { name: 'Calls per second' }),
    page.getByRole('slider', { name: /^Duration, one by one/ })
  ]
  const said = async (plot: typeof first) => (await plot.getAttribute('aria-valuetext')) ?? ''
  const tells = (plot: typeof first, form: string) =>
    until(`${form} is told`, async () => new RegExp(form).exec(await said(plot)))
  const chosen = () =>
    page.evaluate<number>("[...document.querySelectorAll('.u-select')].filter((each) => each.offsetWidth > 0).length")
  await first.focus()
  await tells(first, '^now: all [0-9.]+/s, ')
  for (let steps = 0; steps < 3; steps++) await page.keyboard.press('ArrowLeft')
  // The figures are read anew now and then, and the point moves with them, in all at once.
  await until('both tell of one moment', async () => {
    const [at] = await tells(first, `^${moment}: `)
    return (await said(last)).startsWith(at)
  })
  t.equal(await chosen(), 0)
  for (let steps = 0; steps < 30; steps++) await page.keyboard.press('Shift+ArrowLeft')
  await tells(first, `^${moment} to ${moment} chosen\\. `)
  await until('it is shown in all of them', async () => (await chosen()) === 4)
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Enter')
  for (const plot of [first, last]) await tells(plot, `^Zoomed to ${moment} to ${moment}\\. `)
  await until('nothing is chosen any more', async () => (await chosen()) === 0)
  const [, from = ''] = await tells(first, `^Zoomed to (${moment}) to `)
  await page.keyboard.press('Home')
  await tells(first, `\\. ${from}: `)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Show all', disabled: true }).waitFor()
  await tells(last, '^now: ')
  t.same(complaints, [])
})

t.test('the focus stays at a problem whose figures change', async (t) => {
  const { page, complaints } = await rig.signedIn('overview?tenant=acme')
  const row = page.getByRole('listitem').filter({ hasText: 'files of acme: down for' })
  await row.getByRole('link', { name: 'Open files' }).focus()
  const before = await row.innerText()
  await until('its figures have changed', async () => (await row.innerText()) !== before)
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Open files')
  t.same(complaints, [])
})

t.test('whose the limits are sees how much of them is in use', async (t) => {
  const headers = { 'If-Match': '*' }
  const limits = { steady: { perHour: 10, burst: 4 }, daily: { perDay: 2, per: ['principal'] } }
  const put = await rig.call('PATCH', '/v1/tenants/team', { body: { resources: { sessions: 4 }, limits }, headers })
  t.equal(put.status, 200, put.text)
  for (let calls = 0; calls < 2; calls++) await rig.tom.request('tools/call', { name: 'tickets__echo', arguments: {} })
  const { page, complaints } = await rig.signedIn('overview?tenant=team')
  const team = page.getByRole('region', { name: 'How much team has in use' })
  await team.getByText('1 of 4').waitFor()
  t.equal(await team.getByRole('meter', { name: 'Sessions' }).getAttribute('value'), '0.25')
  t.match(await team.innerText(), /Streams\s+\d+, no limit/)
  t.match(await team.innerText(), /Limit daily: calls per day nothing left for 1\s+2 of 2/)
  t.equal(await team.getByRole('meter', { name: 'Limit daily: calls per day' }).getAttribute('value'), '1')
  t.match(await team.innerText(), /Limit steady: calls per hour\s+2 of 4/)
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
  const own = await rig.signedIn('overview', adminKeys.acme)
  await own.page.getByRole('region', { name: 'How much acme has in use' }).getByRole('meter').first().waitFor()
  t.equal(await own.page.getByRole('region', { name: /^How much team/ }).count(), 0)
  const idle = connect(Number(new URL(rig.url()).port), '127.0.0.1')
  t.teardown(() => idle.destroy())
  await once(idle, 'connect')
  const all = await rig.signedIn('overview')
  const connections = all.page.getByRole('meter', { name: 'Connections of clients' })
  const part = Number(await connections.getAttribute('value'))
  t.ok(part > 0 && part < 0.5, `a part of the connections is open: ${part}`)
  t.same(all.complaints, [])
  t.same(own.complaints, [])
})

/** What a page writes on its canvases. */
const written = (page: Page) => page.evaluate<string[]>('globalThis.written.splice(0)')
const writing = `{
  globalThis.written = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (words, ...rest) {
    globalThis.written.push(words)
    return fillText.call(this, words, ...rest)
  }
}`

/** Answers as a Prometheus does that has counted for ever, one call a second. */
const prometheus = () =>
  createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const asked = new URLSearchParams(body)
      const [start, end, step] = ['start', 'end', 'step'].map((name) => Number(asked.get(name)))
      const metric = { gatehouse_tenant: 'acme', gatehouse_outcome: 'ok' }
      const values = []
      for (let at = start ?? 0; at <= (end ?? 0); at += step || 60) values.push([at, String(step)])
      const found = asked.has('start') ? { metric, values } : { metric, value: [Number(asked.get('time')), '1'] }
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result: [found] } }))
    })
  })

t.test('plots of days have dates, and processes that differ are named with what differs', async (t) => {
  const [url, store] = await Promise.all([listen(t, prometheus()), redis(t)])
  const own = await consoleRig(t, { admin: { prometheus: { url } }, store: store.url })
  const older = { store: store.url, version: '0.0.0-older' }
  const other = await adminGateway(t, { upstreams: {}, ...older, top: { admin: adminSection } })
  const { page, complaints } = await own.signedIn('overview')
  await page.addInitScript(writing)
  await page.reload()
  const span = page.getByRole('combobox', { name: 'Last' })
  const first = page.getByRole('slider', { name: 'Calls per second' })
  const date = /^\d{1,2} [A-Z][a-z]{2,3}$/
  for (const [chosen, form] of [
    ['24 hours', /^\d\d:\d\d$/],
    ['7 days', date]
  ] as const) {
    await span.selectOption(chosen)
    await first.waitFor()
    const texts = await until(`dates stand at the axis of ${chosen}`, async () => {
      const all = await written(page)
      return all.some((each) => date.test(each)) ? all : undefined
    })
    t.ok(texts.some((each) => form.test(each)))
    await first.focus()
    await page.keyboard.press('ArrowLeft')
    const told = await until('the moment is told', async () => {
      const words = await first.getAttribute('aria-valuetext')
      return words?.startsWith('now') === false ? words : undefined
    })
    t.match(told, new RegExp(`^\\d{1,2} [A-Z][a-z]+, ${moment}: `), 'with its day')
  }
  await span.selectOption('60 minutes')
  const { json } = await other.call('GET', '/v1/processes')
  const [theirs] = (json as { items: Array<{ process: string; snapshot: string }> }).items
  const differs = `${theirs?.process} differs from the process that answers: version 0.0.0-older instead of 0.0.0-test; `
  await page.getByText(`${differs}serves with ${theirs?.snapshot} instead of `).waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})
