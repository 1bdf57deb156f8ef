// What each role sees and is offered: no more than it may, and not less. What is missing for one is there for another.

import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { adminKeys } from '../kit/admin.ts'
import { until } from '../kit/until.ts'
import { endedCalls, violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name })
const anyTable = 'main tbody tr'

/** What not everybody is offered: where it is, and what is there for everybody once it would be there, too. */
const sights = {
  use: ['overview', '.plots', (page) => page.getByRole('heading', { name: 'How much is in use' })],
  make: ['tenants', anyTable, (page) => button(page, 'Make a tenant')],
  reconnect: ['upstreams?tenant=TENANT&upstream=UPSTREAM', '#upstream', (page) => button(page, 'Reconnect at once')],
  end: ['people?tenant=TENANT', anyTable, (page) => button(page, /^End: /)],
  kill: ['people?tenant=TENANT', '.empty:has-text("Nothing is stopped")', (page) => button(page, 'See what it hits')],
  rules: [
    'policy?tenant=TENANT',
    '.sum, .empty, p:has-text("does not read rules")',
    (page) => page.getByText(/^No rules$|^What no rule decides/)
  ],
  records: ['audit?tenant=TENANT', 'main p', (page) => button(page, 'Verify')],
  doctor: ['connect?tenant=TENANT', '.hosts', (page) => button(page, 'Examine')]
} satisfies Record<string, readonly [place: string, ready: string, look: (page: Page) => Locator]>
type Sight = keyof typeof sights

const nine = [
  ...['Overview', 'Live', 'Upstreams', 'Tenants and endpoints', 'People and connections'],
  ...['Catalog', 'Policy', 'Audit', 'Connect']
]
const upstreamOf: Readonly<Record<string, string>> = { acme: 'tickets', globex: 'notes', team: 'tickets' }

interface Role {
  readonly key: string
  readonly tenants: readonly string[]
  readonly may: readonly Sight[]
  readonly misses?: string
}

const roles: Readonly<Record<string, Role>> = {
  'a platform-admin': {
    key: adminKeys.platform,
    tenants: ['acme', 'globex', 'team'],
    may: Object.keys(sights) as Sight[]
  },
  'a tenant-admin': {
    key: adminKeys.acme,
    tenants: ['acme'],
    may: ['reconnect', 'end', 'kill', 'rules', 'records', 'doctor']
  },
  'an auditor': { key: adminKeys.auditor, tenants: ['acme', 'globex', 'team'], may: ['use', 'rules', 'records'] },
  'a viewer': { key: adminKeys.viewer, tenants: ['acme', 'globex', 'team'], may: ['use'], misses: 'Audit' },
  'a viewer of one tenant': { key: adminKeys.globexViewer, tenants: ['globex'], may: [], misses: 'Audit' }
}

for (const [role, { key, tenants, may, misses }] of Object.entries(roles))
  t.test(`${role} sees what they may see, and is offered what they may do`, async (t) => {
    const { page, complaints } = await rig.signedIn('live', key)
    await page.getByText('Listening').waitFor()
    await rig.traffic()
    const seen = endedCalls(page).getByRole('row')
    const [first = ''] = tenants
    await seen.filter({ hasText: first }).first().waitFor()
    // The last one of the traffic: what else there is has come before.
    if (first === 'acme') await seen.filter({ hasText: 'slow/slow' }).first().waitFor()
    else await until('it has passed', async () => (await seen.count()) > 1)
    for (const tenant of ['acme', 'globex', 'team'])
      t.equal((await seen.filter({ hasText: tenant }).count()) > 0, tenants.includes(tenant), `calls of ${tenant}`)

    const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
    t.same(
      links,
      nine.filter((each) => each !== misses)
    )
    const choice = page.getByRole('combobox', { name: 'Tenant' }).locator('option')
    await choice.nth(tenants.length).waitFor({ state: 'attached' })
    t.same((await choice.allInnerTexts()).slice(1), tenants)
    const tenant = tenants.at(-1) ?? ''
    for (const [name, [place, ready, look]] of Object.entries(sights)) {
      const at = place.replace('TENANT', tenant).replace('UPSTREAM', upstreamOf[tenant] ?? '')
      await rig.goTo(page, at)
      await page.locator(ready).first().waitFor()
      const isOffered = (may as readonly string[]).includes(name)
      if (isOffered) await look(page).first().waitFor()
      t.equal((await look(page).count()) > 0, isOffered, name)
    }
    t.same(await violationsInBothThemes(page), [])
    t.same(complaints, [])
    const others = ['acme', 'globex', 'team'].filter((each) => !tenants.includes(each))
    for (const other of others) {
      await page.goto(`${rig.adminUrl}/console/#/upstreams?tenant=${other}`)
      await page.getByText('There is no such tenant, or this key is not for it.').first().waitFor()
    }
  })
