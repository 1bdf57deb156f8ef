// Attack: upstreams, clients and tenants write markup and scripts into every text that an administrator will look at.
// They are shown as text and change nothing.

import type { Page } from 'playwright-core'
import t from 'tap'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'

import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
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
const [script = '', image = '', svg = ''] = corpus
const inputSchema = {
  type: 'object',
  title: all,
  description: all,
  properties: { [corpus[0] ?? '']: { description: all } }
}
const refusing = await startUpstream({ errors: { initialize: { code: -32_000, message: all } } })
t.teardown(() => refusing.close())
const lastWords = `process.stderr.write(${JSON.stringify(`${all}\n`)}, () => process.exit(3))`
const audience = 'https://admin.gatehouse.example'
const idp = await forgingIssuer(t, { resource: audience, now: Date.now() })
const access = [{ role: 'platform-admin', groups: ['platform'] }]
const rig = await consoleRig(t, {
  admin: { oidc: { audience, issuers: [{ issuer: idp.issuer }], access } },
  script: {
    name: image,
    tools: ['echo', 'rpcerror', 'fail', 'steps', ...corpus].map((name) => ({
      name,
      title: all,
      description: all,
      inputSchema,
      outputSchema: inputSchema,
      annotations: { title: all },
      icons: [{ src: 'javascript:globalThis.taken=1' }]
    })),
    prompts: corpus.map((name) => ({
      name,
      title: all,
      description: all,
      arguments: [{ name: all, description: all }]
    })),
    resources: [{ uri: `test://${corpus[0]}`, name: all, description: all }],
    templates: corpus.map((part) => ({ uriTemplate: `test://${part}/{id}`, name: part, title: all, description: all }))
  },
  upstreams: {
    refusing: { type: 'http', url: refusing.url },
    dying: { type: 'stdio', command: process.execPath, args: ['-e', lastWords.replaceAll('$', '$$$$')] }
  }
})

const dangerous =
  '#app script, #app iframe, #app object, #app base, #app meta, #app svg:not(.qr *, .qr), #app [onerror], #app [onload], #app [srcdoc], ' +
  '#app [src^="javascript"], #app [href^="javascript"], ' +
  '#app img:not([src="icon.svg"]):not([src^="data:image/"]):not([src^="blob:"])'
/** Where such texts are, what of them is there to be seen, and what is done to see more of them. */
const places: ReadonlyArray<readonly [place: string, shown?: string, look?: (page: Page) => Promise<void>]> = [
  ['live', script, openLastCall],
  ['overview?tenant=acme', script, (page) => page.getByText('refusing of acme').waitFor()],
  ['overview?tenant=acme', image, (page) => chosen(page, 'By', 'tool')],
  ['upstreams?tenant=acme&upstream=tickets'],
  ['upstreams?tenant=acme&upstream=refusing', script],
  ['upstreams?tenant=acme&upstream=dying', '<img src=x'],
  [`upstreams?tenant=acme&upstream=${encodeURIComponent(all)}`, svg],
  ['tenants?tenant=team&endpoint=default', image],
  [
    'tenants?tenant=team',
    script,
    (page) =>
      page
        .getByRole('button', { name: /^Compare: / })
        .nth(1)
        .click()
  ],
  ['people?tenant=acme', image],
  ['people?tenant=team', svg],
  ['audit?tenant=team', svg],
  ['catalog?tenant=acme&endpoint=support', image, tryTool],
  ['catalog?tenant=acme&endpoint=support&kind=prompt', image, (page) => opened(page, image)],
  ['catalog?tenant=acme&endpoint=support&kind=resource', script],
  ['catalog?tenant=acme&endpoint=support&kind=template', script, (page) => opened(page, /test:/)],
  ['catalog?tenant=team', image, compareMoments],
  ['upstreams?tenant=team', image, (page) => lookAt(page, rig.tickets.url)],
  ['policy?tenant=team', script, ask],
  ['upstreams?tenant=team', script, (page) => lookAt(page, refusing.url)],
  ['audit?tenant=acme', image, openRecord],
  ['connect?tenant=acme&endpoint=support'],
  [`live?filter=${encodeURIComponent(image)}`],
  [`tenants?tenant=${encodeURIComponent(svg)}`, svg],
  [`catalog?tenant=acme&endpoint=${encodeURIComponent(svg)}`],
  [`policy?tenant=${encodeURIComponent(svg)}`],
  [encodeURIComponent(svg)]
]

async function openLastCall(page: Page): Promise<void> {
  await page.getByText('rpc_error').first().waitFor()
  await page.locator('td button').last().click()
  await page.getByRole('dialog').waitFor()
}

/** A prompt, or a template. */
async function opened(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('rowheader').getByRole('button', { name }).first().click()
  await page.getByRole('dialog').getByText('Why it is offered').waitFor()
}

async function chosen(page: Page, label: string, value: string): Promise<void> {
  await page.getByRole('combobox', { name: label }).selectOption(value)
}

/** All that it says on its way, what it asks, and how it ends. */
async function tryTool(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'steps', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Why it is offered').waitFor()
  t.equal(await page.locator(dangerous).count(), 0, 'a definition has no element of theirs')
  await dialog.getByRole('button', { name: 'Try it' }).click()
  await dialog.getByLabel('Your API key or token').fill(apiKey)
  await dialog.getByLabel('Write the arguments as JSON').check()
  const properties = { [script]: { type: 'string', title: all, description: all, enum: [all, image] } }
  const params = { message: all, requestedSchema: { type: 'object', properties } }
  const steps = [
    { log: all },
    { progress: 1, message: all },
    { wait: true },
    { ask: [{ method: 'elicitation/create', params }] }
  ]
  await dialog.getByLabel('Arguments, as a JSON object').fill(JSON.stringify({ steps }))
  await dialog.getByRole('button', { name: 'Call it' }).click()
  await dialog.locator('.progress').getByText(script).waitFor()
  t.equal(await page.locator(dangerous).count(), 0, 'progress has no element of theirs')
  rig.tickets.server.release()
  await dialog.getByRole('heading', { name: 'The server asks' }).waitFor()
  t.equal(await page.locator(dangerous).count(), 0, 'what a server asks has no element of theirs')
  await dialog.getByRole('button', { name: 'Decline' }).click()
  await dialog.getByText('The whole answer').waitFor()
}

/** Whoever changed the configuration stands in the choice; names of upstreams, the others in it, have no markup. */
async function compareMoments(page: Page): Promise<void> {
  await page.getByLabel('Compare two').check()
  const choices = page.getByLabel('The first, as it is').locator('option')
  await choices
    .filter({ hasText: `by ${image}` })
    .first()
    .waitFor({ state: 'attached' })
}

/** What it is called, what it lists, and the error that it answers with. */
async function lookAt(page: Page, url: string): Promise<void> {
  await page.getByRole('button', { name: 'Add upstreams' }).click()
  await page.getByLabel('Name', { exact: true }).fill('seen')
  await page.getByLabel('URL', { exact: true }).fill(url)
  await page.getByRole('button', { name: 'Check it' }).click()
  if (url === refusing.url) return await page.locator('.hops .bad').waitFor()
  await page.locator('.hops').getByText(image).waitFor()
  await page.getByText(/^\d+ tools$/).click()
  await page.locator('.names').getByText(script).waitFor()
}

async function ask(page: Page): Promise<void> {
  await page.getByLabel('What', { exact: true }).fill(`tickets/${image}`)
  await page.getByRole('group', { name: 'Who calls' }).getByLabel('Caller').selectOption('an API key')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('Every rule, and whether it applies').waitFor()
  await page.getByRole('button', { name: 'markup' }).click()
  await page.getByRole('dialog').waitFor()
}

async function openRecord(page: Page): Promise<void> {
  const row = page.getByRole('row').filter({ hasText: image })
  await row.getByRole('button').first().click()
  await page.getByRole('dialog').waitFor()
}

t.test('texts of others are shown as texts', async (t) => {
  const clientInfo = { name: image, version: script }
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  await send(rig.url(), {
    headers: { ...jsonHeaders, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize })
  })
  const rules = [{ name: 'markup', effect: 'allow', what: { names: corpus, upstreams: ['*'] } }]
  const tests = [{ caller: { subject: script, groups: corpus }, name: `tickets/${image}`, expect: 'allowed' }]
  const tools = { 'tickets/echo': { title: image, description: all } }
  const changed = {
    auth: { issuers: [{ issuer: idp.issuer, jwksUri: idp.jwksUri }] },
    policy: { default: 'deny', rules, tests },
    endpoints: { default: { upstreams: ['tickets'], tools } }
  }
  const { headers } = await rig.call('GET', '/v1/tenants/team')
  const patched = await rig.call('PATCH', '/v1/tenants/team', {
    key: await idp.sign({ sub: image, groups: ['platform'] }),
    // As it is, it would begin a reference.
    body: JSON.stringify(changed).replaceAll('${', () => '$${'),
    headers: { 'If-Match': String(headers['etag']), 'Content-Type': 'application/merge-patch+json' }
  })
  t.equal(patched.status, 200, patched.text)
  const token = { sub: svg, client_id: script, groups: corpus, aud: rig.url('default', 'team') }
  const eve = await legacyClient(rig.url('default', 'team'), await idp.sign(token))
  const { page, complaints } = await rig.signedIn('live')
  await page.getByText('Listening').waitFor()
  await rig.ada.request('tools/call', { name: 'tickets__rpcerror', arguments: { message: all.slice(0, 190) } })
  await rig.ada.request('tools/call', { name: `tickets__${image}`, arguments: {} })
  await rig.ada.request('tools/call', { name: image, arguments: {} })
  await eve.request('tools/call', { name: 'tickets__echo', arguments: {} })
  await page.getByRole('cell').getByText(svg).first().waitFor()
  // The log, and what is told of standard error, leave out what looks like the value of a secret.
  const told = async (name: string) => (await rig.call('GET', `/v1/tenants/acme/upstreams/${name}`)).text
  await until(
    'both have said why they are away',
    async () =>
      /"lastError":"[^"]*<script>/.test(await told('refusing')) &&
      /"lastStderr":".*<img src=x/.test(await told('dying'))
  )
  for (const [place, shown, look] of places) {
    await page.keyboard.press('Escape')
    await page.goto(`${rig.adminUrl}/console/#/${place}`)
    await page.locator('main h2, main .table-scroll, main .empty, main .note').first().waitFor()
    await look?.(page)
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

t.test('however long a name is, the way out of its dialog is on the screen', async (t) => {
  const { page } = await rig.signedIn('live', undefined, { viewport: { width: 360, height: 740 } })
  await page.getByText('Listening').waitFor()
  await rig.ada.request('tools/call', { name: `tickets__${'long'.repeat(30)}`, arguments: {} })
  await page.locator('td button').first().click()
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  const within = async (name: string) => {
    const box = await dialog.getByRole('button', { name }).boundingBox()
    return box !== null && box.x >= 0 && box.x + box.width <= 360
  }
  t.ok(await within('Close'))
  const title = await dialog.getByRole('heading').first().boundingBox()
  t.ok(title !== null && title.width > 100 && title.height < 120, 'and its title takes no more than a few lines')
  t.equal(await page.evaluate('document.querySelector("dialog").scrollWidth <= innerWidth'), true)
  await dialog.getByRole('button', { name: 'Close' }).click()
  await dialog.waitFor({ state: 'detached' })
})
