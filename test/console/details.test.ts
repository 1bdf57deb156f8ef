// Details that people decide by, in a real browser: in what two callers differ, schemas and tokens, rounds of a call and
// its trace, and URLs of servers, which are links only where they lead to the web.

import t from 'tap'
import { key as apiKey } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { consoleRig } from './rig.ts'

const rig = await consoleRig(t, { admin: { traceUrl: 'https://traces.example/trace/{traceId}' } })

t.test('two callers are compared by what each sees', async (t) => {
  const policy = {
    default: 'allow',
    rules: [{ name: 'no-echo', effect: 'deny', who: { keys: ['tom'] }, what: { names: ['echo'] } }]
  }
  t.equal((await rig.call('PUT', '/v1/tenants/team/policy', { body: policy })).status, 201)
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  await page.getByLabel('Compare two').check()
  await page.getByText('Only the first sees 0').waitFor()
  await page.getByRole('group', { name: 'Second' }).getByLabel('Caller').selectOption('an API key')
  const first = page.locator('section.card').filter({ hasText: 'Only the first sees 2' })
  await first.waitFor()
  t.same((await first.locator('li').allInnerTexts()).sort(), ['notes__echo', 'tickets__echo'])
  await page.getByText('Only the second sees 0').waitFor()
  t.same(complaints, [])
})

t.test('a schema is read member by member, with the tokens that the tool takes', async (t) => {
  const limits = { type: 'object', required: ['most'], properties: { most: { type: 'integer', minimum: 1 } } }
  const kinds = { type: 'array', items: { enum: ['bug', 'wish'] }, description: 'Which kinds' }
  const inputSchema = { type: 'object', required: ['limits'], properties: { limits, kinds } }
  const upstream = await startUpstream({ tools: [{ name: 'find', inputSchema }] })
  t.teardown(() => upstream.close())
  t.equal((await rig.call('PUT', '/v1/tenants/team/upstreams/tracker', { body: { url: upstream.url } })).status, 201)
  const { page, complaints } = await rig.signedIn('catalog?tenant=team')
  const row = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'tracker__find', exact: true }) })
  await row.waitFor()
  const { json } = await rig.call('POST', '/v1/tenants/team/endpoints/default/catalog', { body: { definitions: true } })
  const { items } = json as { items: Array<{ name: string; tokens: number; definition: object }> }
  const found = items.find(({ name }) => name === 'tracker__find')
  t.equal(found?.tokens, Math.ceil(JSON.stringify(found?.definition).length / 4))
  t.match(await row.innerText(), new RegExp(`\\b${found?.tokens}\\b`))
  await row.getByRole('button').click()
  const dialog = page.getByRole('dialog')
  const members = dialog.locator('.schema').first()
  await members.waitFor()
  t.match(
    (await members.innerText()).replace(/\s+/g, ' '),
    /^limits object required most integer required at least 1 kinds "bug" \| "wish"\[\] Which kinds$/
  )
  t.match(await dialog.innerText(), new RegExp(`Tokens[^]*${found?.tokens}`, 'i'))
  t.same(complaints, [])
})

t.test('a call has its rounds and a link to its trace', async (t) => {
  const { page, complaints } = await rig.signedIn('live?tenant=acme')
  const line = {
    ...{ time: new Date().toISOString(), requestId: 'r1', traceId: 'a/b"c', tenant: 'acme', endpoint: 'default' },
    ...{ method: 'tools/call', upstream: 'tickets', tool: 'rounds', outcome: 'ok', ms: 90, waitMs: 5, upstreamMs: 60 },
    steps: [
      { kind: 'asked', name: 'elicitation/create', at: 20, ms: 20, answer: 'accept' },
      { kind: 'round', name: 'tickets', at: 40, ms: 30 }
    ]
  }
  const body = `event: call\ndata: ${JSON.stringify(line)}\n\n`
  await page.route('**/calls?running=true', (route) => route.fulfill({ contentType: 'text/event-stream', body }))
  await page.reload()
  await page.getByRole('row').filter({ hasText: 'tickets/rounds' }).first().getByRole('button').click()
  const dialog = page.getByRole('dialog', { name: 'Call of rounds' })
  const round = dialog.getByRole('listitem').filter({ hasText: 'Upstream, round 2' })
  t.match(await round.innerText(), /30 ms$/)
  t.match(await dialog.getByRole('listitem').filter({ hasText: 'Upstream and user' }).innerText(), /30 ms$/)
  const link = dialog.getByRole('link', { name: 'a/b"c' })
  t.equal(await link.getAttribute('href'), 'https://traces.example/trace/a%2Fb%22c')
  t.match(await link.getAttribute('rel'), 'noopener')
  t.same(complaints, [])
})

t.test('a URL that a server asks for is a link only where it leads to the web', async (t) => {
  const { page, complaints } = await rig.signedIn('catalog?tenant=acme&endpoint=support')
  const asking = (url: string) => {
    const params = { mode: 'url', message: 'Look here', url, elicitationId: 'e' }
    const inputRequests = { one: { method: 'elicitation/create', params } }
    const result = { resultType: 'input_required', inputRequests, requestState: 's' }
    return `event: answer\ndata: ${JSON.stringify({ status: 200, requestId: 'r', ms: 1, result })}\n\n`
  }
  await page.getByRole('button', { name: 'echo', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Try it' }).click()
  await dialog.getByLabel('Your API key or token').fill(apiKey)
  for (const url of ['javascript:globalThis.taken=1', 'data:text/html,<script>1</script>', 'https://login.example/a']) {
    await page.route('**/try', (route) => route.fulfill({ contentType: 'text/event-stream', body: asking(url) }), {
      times: 1
    })
    await dialog.getByRole('button', { name: 'Call it' }).click()
    await dialog.getByText(url, { exact: true }).waitFor()
    const links = await dialog.getByRole('link').count()
    t.equal(links, url.startsWith('https:') ? 1 : 0, url)
  }
  t.equal(await page.evaluate('globalThis.taken'), undefined)
  t.same(complaints, [])
})
