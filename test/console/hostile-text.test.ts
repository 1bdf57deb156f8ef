// Attack: upstreams, clients and tenants write markup and scripts into every text that an administrator will look at.
// They are shown as text and change nothing.

import t from 'tap'
import { jsonHeaders, send } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { consoleRig } from './rig.ts'

const corpus = [
  '<script>globalThis.taken = 1</script>',
  '<img src=x onerror="globalThis.taken = 1">',
  '"><svg onload="globalThis.taken = 1">',
  "'-globalThis.taken=1-'",
  '</style><iframe srcdoc="<script>top.taken=1</script>">',
  '<a href="javascript:globalThis.taken=1">look</a>',
  '${globalThis.taken = 1}{{constructor.constructor("globalThis.taken=1")()}}',
  '<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example/">'
]
const all = corpus.join(' ')
const inputSchema = {
  type: 'object',
  title: all,
  description: all,
  properties: { [corpus[0] ?? '']: { description: all } }
}
const rig = await consoleRig(t, {
  tools: ['echo', 'rpcerror', 'fail', ...corpus].map((name) => ({
    name,
    title: all,
    description: all,
    inputSchema,
    icons: [{ src: 'javascript:globalThis.taken=1' }]
  }))
})

const dangerous =
  '#app script, #app iframe, #app object, #app base, #app meta, #app svg, #app [onerror], #app [onload], #app [srcdoc], ' +
  '#app [src^="javascript"], #app [href^="javascript"], #app img:not([src="icon.svg"])'

t.test('texts of others are shown as texts', async (t) => {
  const clientInfo = { name: corpus[1], version: corpus[0] }
  await send(rig.url(), {
    headers: { ...jsonHeaders, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    })
  })
  const { page, complaints } = await rig.signedIn('live')
  await page.getByText('Listening').waitFor()
  await rig.ada.request('tools/call', { name: 'tickets__rpcerror', arguments: { message: all.slice(0, 190) } })
  await rig.ada.request('tools/call', { name: corpus[1], arguments: {} })
  const places = {
    live: corpus[0],
    overview: undefined,
    'upstreams?tenant=acme&upstream=tickets': undefined,
    'tenants?tenant=team&endpoint=default': corpus[1],
    'people?tenant=acme': corpus[1],
    [`upstreams?tenant=acme&upstream=${encodeURIComponent(all)}`]: corpus[2],
    [`live?filter=${encodeURIComponent(corpus[1] ?? '')}`]: undefined,
    [`tenants?tenant=${encodeURIComponent(corpus[2] ?? '')}`]: corpus[2]
  }
  for (const [place, shown] of Object.entries(places)) {
    await page.goto(`${rig.adminUrl}/console/#/${place}`)
    await page.locator('main h2, main .table-scroll, main .empty, main .note').first().waitFor()
    if (place === 'live') {
      await page.getByText('rpc_error').waitFor()
      await page.locator('td button').last().click()
      await page.getByRole('dialog').waitFor()
    }
    if (shown !== undefined) await page.getByText(shown).first().waitFor({ state: 'attached' })
    t.equal(await page.locator(dangerous).count(), 0, `${place} has no element of theirs`)
    t.equal(await page.evaluate('globalThis.taken'), undefined, `${place} runs nothing of theirs`)
  }
  t.same(
    complaints.filter((each) => !each.includes('404')),
    [],
    'no policy had to step in'
  )
})
