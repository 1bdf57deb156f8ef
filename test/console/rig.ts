// What every test of the console looks at: a gateway with an admin API, three upstreams of which one is down and one
// slow, two tenants, and people who have called something.

import { adminGateway, adminKeys, globexKey, type AdminGateway } from '../kit/admin.ts'
import { startChromium, type OpenedPage, type TestBrowser } from '../kit/chromium.ts'
import { startUpstream, type HttpUpstream } from '../kit/upstream.ts'
import type { Teardown } from '../kit/until.ts'

export interface ConsoleRig extends AdminGateway {
  readonly browser: TestBrowser
  readonly tickets: HttpUpstream
  /** Signed in as the holder of a key, at a page: the part of the address after `#/`. */
  signedIn(place: string, key?: string, options?: Parameters<TestBrowser['open']>[1]): Promise<OpenedPage>
}

/** @param tools that the upstream `tickets` has, besides those that the scripted server always has */
export async function consoleRig(t: Teardown): Promise<ConsoleRig> {
  const [tickets, slow] = await Promise.all([startUpstream(), startUpstream()])
  for (const each of [tickets, slow]) t.teardown(() => each.close())
  const http = ({ url }: HttpUpstream) => ({ type: 'http', url })
  const gateway = await adminGateway(t, {
    upstreams: { tickets: http(tickets), slow: http(slow), files: { type: 'http', url: 'http://127.0.0.1:9/mcp' } },
    endpoints: {
      default: { upstreams: ['tickets', 'slow', 'files'] },
      support: { upstreams: ['tickets'], prefix: '' }
    },
    tenants: {
      globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { notes: http(slow) } }
    },
    top: { audit: { store: true } }
  })
  const browser = await startChromium(t)
  const rig: ConsoleRig = {
    ...gateway,
    get log() {
      return gateway.log
    },
    browser,
    tickets,
    async signedIn(place, key = adminKeys.platform, options) {
      const opened = await browser.open(`${gateway.adminUrl}/console/#/${place}`, options)
      await opened.page.getByLabel('Admin key').fill(key)
      await opened.page.keyboard.press('Enter')
      await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      return opened
    }
  }
  return rig
}
