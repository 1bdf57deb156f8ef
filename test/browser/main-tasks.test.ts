// The main task of each of the nine pages of the console, by the mouse and by the keyboard alone, against one gateway with
// three upstreams, of which one is down and one is slow, two tenants of a file, one that the API made, and traffic.

import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { consoleRig } from '../console/rig.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { hands, type Hand } from './hands.ts'

const rig = await consoleRig(t)
await rig.traffic()
const rules = [{ name: 'no-crash', effect: 'deny', what: { names: ['crash'] } }]
await rig.call('PUT', '/v1/tenants/team/policy', { body: { default: 'allow', rules } })

const toolsOfTom = async (): Promise<string[]> => {
  const { json } = await rig.tom.request('tools/list')
  return json.result.tools.map(({ name }: { name: string }) => name)
}
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true })

interface Task {
  readonly page: string
  readonly what: string
  readonly place: string
  run(page: Page, hand: Hand, t: Test): Promise<unknown>
}

const tasks: readonly Task[] = [
  {
    page: 'Overview',
    what: 'calls of each tool are looked at and zoomed into, and what is wrong is gone after',
    place: 'overview?tenant=acme',
    async run(page, hand) {
      await hand.choose(page.getByRole('combobox', { name: 'By' }), 'tool')
      await page.getByText('tickets/echo').first().waitFor()
      await hand.zoom(page.getByRole('figure').first())
      await hand.press(page.getByRole('button', { name: 'Show all', disabled: false }))
      await page.getByRole('button', { name: 'Show all', disabled: true }).waitFor()
      await page.getByText(/^files of acme: down for /).waitFor()
      await hand.press(page.getByRole('link', { name: 'Open files' }))
      await page.getByRole('heading', { name: 'files' }).waitFor()
    }
  },
  {
    page: 'Live',
    what: 'a call is found while others pass, and opened',
    place: 'live',
    async run(page, hand, t) {
      await page.getByText('Listening').waitFor()
      await hand.write(page.getByRole('searchbox'), 'tool_error')
      await rig.traffic()
      const rows = page.getByRole('table').getByRole('rowheader')
      await rows.getByText('fail').waitFor()
      t.equal(await rows.count(), 1)
      await hand.press(button(page, 'Pause'))
      await rig.traffic()
      await page.getByText(/^Paused, [1-9]/).waitFor()
      await hand.press(page.locator('td button'))
      await page.getByRole('dialog', { name: 'Call of fail' }).getByText('Upstream and user').waitFor()
      await hand.close(page)
    }
  },
  {
    page: 'Upstreams',
    what: 'a server is looked at, added after a plan, and connected anew',
    place: 'upstreams?tenant=team',
    async run(page, hand, t) {
      const name = `by-${hand.name}`
      await hand.press(button(page, 'Add upstreams'))
      await hand.write(field(page, 'Name'), name)
      await hand.write(field(page, 'URL'), rig.tickets.url)
      await hand.press(button(page, 'Check it'))
      await page.locator('.hops').getByText('list', { exact: true }).waitFor()
      await hand.press(button(page, 'See what it changes'))
      await page.getByText(`${name} is connected.`).waitFor()
      await hand.press(button(page, 'Apply'))
      await hand.press(page.getByRole('link', { name, exact: true }))
      await hand.press(button(page, 'Reconnect'))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Reconnect' }))
      await page.getByText(`${name} is connected anew.`).waitFor()
      t.ok((await toolsOfTom()).includes(`${name}__echo`))
    }
  },
  {
    page: 'Tenants and endpoints',
    what: 'an endpoint is put together by ticking, compared with how it was, and taken back',
    place: 'tenants?tenant=team&endpoint=default',
    async run(page, hand, t) {
      const renamed = `by_${hand.name}`
      t.ok((await toolsOfTom()).includes('tickets__echo'))
      await hand.press(field(page, 'tickets/echo'))
      await hand.write(field(page, 'Name of tickets/pid'), renamed)
      await hand.press(button(page, 'Move notes up'))
      await hand.press(button(page, 'See what it changes'))
      await page.getByText(/^Callers of default lose 2 tools/).waitFor()
      t.ok((await toolsOfTom()).includes('tickets__echo'), 'nothing has changed yet')
      const versions = page.getByRole('button', { name: /^Compare: / })
      const listed = await versions.count()
      await hand.press(button(page, 'Apply'))
      await versions.nth(listed).waitFor()
      const tools = await toolsOfTom()
      t.ok(tools.includes(renamed) && !tools.includes('tickets__echo'))
      await hand.press(versions.nth(1))
      await page.getByRole('dialog').getByText(`"${renamed}"`).waitFor()
      await hand.close(page)
      await hand.press(page.getByRole('button', { name: /^Restore: / }).first())
      await page.getByText(/^Callers of default gain 2 tools/).waitFor()
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Restore' }))
      await until('it is as before', async () => (await toolsOfTom()).includes('tickets__echo'))
    }
  },
  {
    page: 'People and connections',
    what: 'a tool is stopped with what that hits and taken back, and a session is ended',
    place: 'people?tenant=acme',
    async run(page, hand, t) {
      const call = async () => (await rig.ada.request('tools/call', { name: 'tickets__echo', arguments: {} })).json
      await hand.write(field(page, 'Upstream'), 'tickets')
      await hand.write(field(page, 'Tool'), 'echo')
      await hand.press(button(page, 'See what it hits'))
      await page.getByText(/^[1-9]\d* calls? of the last hour at this process would have been refused/).waitFor()
      await hand.press(button(page, 'Stop it now'))
      await button(page, 'Take back: tickets / echo').waitFor()
      t.match(await call(), { error: {} })
      await hand.press(button(page, 'Take back: tickets / echo'))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Take back' }))
      await page.getByText('Nothing is stopped').waitFor()
      t.match(await call(), { result: {} })
      const own = await legacyClient(rig.url(), apiKey, '2025-03-26')
      await page.reload()
      const row = page.getByRole('row').filter({ hasText: '2025-03-26' })
      await hand.press(row.getByRole('button', { name: /^End: / }))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'End' }))
      await row.waitFor({ state: 'detached' })
      t.equal((await own.request('tools/list')).status, 404)
    }
  },
  {
    page: 'Catalog',
    what: 'a tool is looked at and tried as oneself, and two revisions are compared',
    place: 'catalog?tenant=acme&endpoint=support',
    async run(page, hand) {
      await hand.press(button(page, 'elicit'))
      const dialog = page.getByRole('dialog')
      await dialog.getByText('Why it is offered').waitFor()
      await hand.press(button(page, 'Try it'))
      await hand.write(dialog.getByLabel('Your API key or token'), apiKey)
      await hand.press(button(page, 'Call it'))
      await dialog.getByRole('heading', { name: 'The server asks' }).waitFor()
      await hand.write(field(page, 'name'), hand.name)
      await hand.press(button(page, 'Accept'))
      await dialog.getByText('succeeded').waitFor()
      await dialog.locator('pre').getByText(hand.name).first().waitFor()
      await hand.close(page)
      await hand.press(field(page, 'Compare two'))
      const revision = page.getByRole('group', { name: 'Second' }).getByLabel('Revision of MCP')
      await hand.choose(revision, '2024-11-05')
      await page.getByRole('heading', { name: '1 differ' }).waitFor()
      await page.getByText('Only the first sees 0').waitFor()
    }
  },
  {
    page: 'Policy',
    what: 'a rule is opened, a question is answered and kept as a test',
    place: 'policy?tenant=team',
    async run(page, hand) {
      await hand.press(button(page, 'no-crash'))
      await page.getByRole('dialog').getByText('tickets__crash').waitFor()
      await hand.close(page)
      await hand.choose(page.getByRole('group', { name: 'Who calls' }).getByLabel('Caller'), 'an API key')
      const [name, sentence] = hand.name === 'mouse' ? ['crash', /^Denied: /] : ['echo', /^Allowed: /]
      await hand.write(field(page, 'What'), `tickets/${name}`)
      await hand.press(button(page, 'Explain'))
      await page.getByText(sentence).first().waitFor()
      await hand.press(button(page, 'Keep as a test'))
      await hand.press(button(page, 'Apply'))
      await page.getByRole('rowheader', { name: `tickets/${name}` }).waitFor()
      await page.getByText(/^\d tests? holds?\.$/).waitFor()
    }
  },
  {
    page: 'Audit',
    what: 'a record is found and opened, what is found is taken along, and the chain is verified',
    place: 'audit?tenant=acme',
    async run(page, hand, t) {
      await hand.choose(field(page, 'Kind'), 'call')
      const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'tickets__fail' }) })
      await hand.press(row.getByRole('button').first())
      await page.getByRole('dialog', { name: 'Record: call' }).getByText('tool_error').first().waitFor()
      await hand.close(page)
      const begun = page.waitForEvent('download')
      await hand.press(button(page, 'Download all of this kind and time'))
      const lines = (await readFile(await (await begun).path(), 'utf8')).trimEnd().split('\n')
      t.ok(lines.length > 5 && lines.every((line) => (JSON.parse(line) as { kind: string }).kind === 'call'))
      await hand.press(button(page, 'Verify'))
      await page.getByText('Nothing is missing or altered.').waitFor()
    }
  },
  {
    page: 'Connect',
    what: 'a snippet is copied, and the way of a host is examined',
    place: 'connect?tenant=acme&endpoint=support',
    async run(page, hand) {
      await hand.choose(page.getByRole('combobox', { name: 'Hosts use' }), 'their own login')
      await field(page, 'Snippet for Cursor').filter({ hasNotText: 'YOUR_API_KEY' }).waitFor()
      await hand.choose(page.getByRole('combobox', { name: 'Hosts use' }), 'an API key')
      await field(page, 'Snippet for Cursor').filter({ hasText: 'YOUR_API_KEY' }).waitFor()
      await hand.press(button(page, 'Copy: Snippet for Cursor'))
      await page.getByText('Copied', { exact: true }).waitFor()
      await hand.write(field(page, 'API key or token'), apiKey)
      await hand.press(button(page, 'Examine'))
      await page.getByText('All hops that were tried are well.').waitFor()
    }
  }
]

for (const { page: title, what, place, run } of tasks)
  for (const hand of hands)
    t.test(`${title}, by the ${hand.name}: ${what}`, async (t) => {
      const { page, complaints } = await rig.signedIn(place)
      await page.getByRole('heading', { name: title, level: 1 }).waitFor()
      await run(page, hand, t)
      await until('nothing is left open', async () => (await page.getByRole('dialog').count()) === 0)
      t.same(complaints, [])
    })

t.test('there is one of each page', async (t) => {
  const { page } = await rig.signedIn('overview')
  const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
  t.same(links.toSorted(), tasks.map((task) => task.page).toSorted())
})
