// `npm run screenshots`: each page of the console with some traffic behind it, in light and in dark, into docs/console.
// Arguments: names of pages, for these alone.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { consoleRig } from '../test/console/rig.ts'

const folder = join(import.meta.dirname, '..', 'docs', 'console')
/** By the name of their files: where each page is looked at, and what is there once it is ready. */
const places: Readonly<Record<string, readonly [place: string, ready: string]>> = {
  overview: ['overview', '.plot'],
  live: ['live', '.calls'],
  upstreams: ['upstreams?tenant=acme&upstream=files', '#upstream'],
  tenants: ['tenants?tenant=team&endpoint=default', '.rename'],
  people: ['people?tenant=acme', '.stop'],
  catalog: ['catalog?tenant=acme', '.sum'],
  policy: ['policy?tenant=team', '.sum'],
  audit: ['audit?tenant=acme', '#records ~ * table'],
  connect: ['connect?tenant=acme', '.hosts']
}
const rules = [
  { name: 'everybody-reads', effect: 'allow', what: { names: ['echo', 'get_*', 'list_*'] } },
  { name: 'developers', effect: 'allow', who: { groups: ['developers'] }, what: { upstreams: ['tickets'] } },
  { name: 'large-amounts', effect: 'deny', what: { kinds: ['tool'], names: ['pay*'] }, when: 'args.amount > 500.0' },
  { name: 'no-crash', effect: 'deny', what: { names: ['crash', 'slow'] } }
]

const ends: Array<() => unknown> = []
const rig = await consoleRig({ teardown: (end: () => unknown) => void ends.unshift(end) })
const wanted = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
await rig.call('PUT', '/v1/tenants/team/policy', { body: { default: 'deny', rules } })
for (let round = 0; round < 4; round++) await rig.traffic()
for (const [name, [place, ready]] of Object.entries(places)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const { page } = await rig.signedIn(place, undefined, { viewport: { width: 1280, height: 860 } })
  if (name === 'live') await page.getByText('Listening').waitFor()
  await rig.traffic()
  await page.locator(ready).first().waitFor()
  await page.locator('h1').click()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) })
  }
  console.log(name)
  await page.context().close()
}
for (const end of ends) await end()
