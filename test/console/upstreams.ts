// The upstreams of a tenant, in a real browser: connected anew, and added from an mcp.json and an entry of a registry.

import t from 'tap'
import { until } from '../kit/until.ts'
import { violationsInBothThemes } from './rig.ts'
import { rig } from './shared-rig.ts'

t.test('an upstream is connected anew, and another one is added after a plan', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=team')
  await page.getByRole('link', { name: 'tickets' }).click()
  await page.getByRole('button', { name: 'Reconnect', exact: true }).click()
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Reconnect' }).click()
  await page.getByText('tickets is connected anew.').waitFor()

  await page.getByRole('button', { name: 'Add upstreams' }).focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('the text of an mcp.json').check()
  await page.getByLabel('mcp.json', { exact: true }).fill('{ "mcpServers": { "none": {} } }')
  await page.getByRole('button', { name: 'See what it changes' }).click()
  await page.getByText('The text has no servers').waitFor()
  const text = JSON.stringify({ mcpServers: { more: { type: 'http', url: rig.tickets.url } } })
  await page.getByLabel('mcp.json', { exact: true }).fill(text)
  t.same(await violationsInBothThemes(page), [])
  await page.getByRole('button', { name: 'See what it changes' }).click()
  await page.getByText('more is connected.').waitFor()
  t.same(await violationsInBothThemes(page), [])
  await page.keyboard.press('Escape')
  await page.getByText('more is connected.').waitFor({ state: 'detached' })
  t.equal(await page.getByLabel('mcp.json', { exact: true }).inputValue(), text, 'what was pasted is there still')
  await page.getByRole('button', { name: 'See what it changes' }).click()
  await page.getByText('more is connected.').waitFor()
  await page.getByRole('button', { name: 'Apply' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'more' }).waitFor()
  t.match((await rig.call('GET', '/v1/tenants/team/upstreams/more')).json, { name: 'more' })
  t.same(complaints, [])
})

t.test('an upstream that stays away is not said to be connected', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=acme&upstream=files')
  await page.getByRole('button', { name: 'Reconnect', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Reconnect' }).click()
  await page.getByText('files was tried anew, and cannot be reached.').waitFor()
  t.equal(await page.getByText('is connected anew').count(), 0)
  t.same(complaints, [])
})

t.test('each upstream says over which transport it is spoken to, and a process what it wrote', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=acme')
  const listed = async () => (await rig.ada.request('tools/list')).text
  await until('all are listed', async () => /older__echo[^]*local__echo/.test(await listed()))
  await rig.ada.request('tools/call', { name: 'local__stderr', arguments: { text: 'reading the index\n', times: 2 } })
  await rig.ada.request('tools/call', { name: 'local__raw', arguments: { text: 'ready!\n' } })
  const rows = page.getByRole('table', { name: 'Upstreams' }).getByRole('row')
  const transports = { tickets: 'Streamable HTTP', older: 'HTTP+SSE', local: 'stdio process', files: 'HTTP' }
  for (const [name, transport] of Object.entries(transports))
    await rows.filter({ hasText: name }).getByRole('cell', { name: transport, exact: true }).waitFor()
  await page.getByRole('link', { name: 'older' }).click()
  await page.getByRole('definition').getByText('HTTP+SSE', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'files' }).click()
  await page.getByText('Streamable HTTP or HTTP+SSE: the gateway knows which while a connection is open.').waitFor()
  await page.getByRole('link', { name: 'local' }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('1 line that is no message on its standard output.').waitFor()
  await page.getByRole('group', { name: 'Standard error' }).getByText('reading the index').first().waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.same(complaints, [])
})

t.test('a process says how much memory it takes, and is another one after it was restarted', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=acme&upstream=local')
  const pid = async (): Promise<string> =>
    (await rig.ada.request('tools/call', { name: 'local__pid', arguments: {} })).json.result.content[0].text
  const before = await pid()
  await page.getByText(/^[1-9]\d* process(?:es)?, [1-9]\d*\.\d MiB of memory$/).waitFor()
  await page.getByRole('button', { name: 'Restart', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Restart' })
  await dialog.getByText('closes the present ones after the calls that run on them').waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.equal(await pid(), before, 'nothing has ended yet')
  await dialog.getByRole('button', { name: 'Restart' }).click()
  await page.getByText('local is connected anew.').waitFor()
  await until('it is another process', async () => (await pid()) !== before)
  t.same(complaints, [])
})

t.test('a server at a URL is looked at hop by hop, before it is added', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=team')
  await page.getByRole('button', { name: 'Add upstreams' }).click()
  await page.getByLabel('Name', { exact: true }).fill('seen')
  const look = page.getByRole('button', { name: 'Check it' })
  await page.getByLabel('URL', { exact: true }).fill('http://127.0.0.1:9/mcp')
  await look.focus()
  await page.keyboard.press('Enter')
  await page.getByText('Is the server running, and is the port of the URL right?').waitFor()
  t.same(await page.locator('.hops li strong').allInnerTexts(), ['DNS', 'connection and TLS'])
  t.same(await violationsInBothThemes(page), [])
  await page.getByLabel('URL', { exact: true }).fill(rig.tickets.url)
  t.equal(await page.locator('.hops li').count(), 0, 'what was found is not said of another URL')
  await look.click()
  await page.getByText(/^\d+ tools$/).click()
  t.same(await page.locator('.hops li strong').allInnerTexts(), [
    ...['DNS', 'connection and TLS', 'the 401', 'initialize', 'list']
  ])
  await page.locator('.names').getByText('echo', { exact: true }).waitFor()
  t.same(await violationsInBothThemes(page), [])
  t.equal((await rig.call('GET', '/v1/tenants/team/upstreams/seen')).status, 404)
  await page.getByRole('button', { name: 'See what it changes' }).click()
  await page.getByText('seen is connected.').waitFor()
  t.same(complaints, [])
})

t.test('that people connect accounts is said of the URL that was looked at, and of no other one', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=team')
  const found = { contentType: 'text/event-stream', body: 'event: found\ndata: {"asksPeople":true}\n\n' }
  await page.route('**/discover', (route) => route.fulfill(found))
  await page.getByRole('button', { name: 'Add upstreams' }).click()
  await page.getByLabel('Name', { exact: true }).fill('accounts')
  const planned = async (url: string) => {
    await page.getByLabel('URL', { exact: true }).fill(url)
    const asked = page.waitForRequest('**/v1/plan')
    await page.getByRole('button', { name: 'See what it changes' }).click()
    const { tenants } = (await asked).postDataJSON()
    await page.getByRole('dialog', { name: 'What this change does' }).waitFor()
    await page.keyboard.press('Escape')
    return tenants.team.upstreams.accounts
  }
  await page.getByLabel('URL', { exact: true }).fill(rig.tickets.url)
  await page.getByRole('button', { name: 'Check it' }).click()
  await page.getByLabel('Each person connects an account of their own there').check()
  const other = `${rig.tickets.url}?other`
  t.same(await planned(other), { type: 'http', url: other })
  t.same(await planned(rig.tickets.url), { type: 'http', url: rig.tickets.url, auth: { type: 'user' } })
  t.same(complaints, [])
})

t.test('an entry of a registry becomes an upstream, with what it asks for', async (t) => {
  const { page, complaints } = await rig.signedIn('upstreams?tenant=team')
  const remote = {
    type: 'streamable-http',
    url: rig.tickets.url.replace(/mcp$/, '{place}'),
    variables: { place: { description: 'Where it is.', isRequired: true } },
    headers: [
      { name: 'X-Key', description: '<b>Yours</b>', isRequired: true, isSecret: true },
      { name: 'X-Region', value: 'eu' },
      { name: 'X-Left-Empty' }
    ]
  }
  const packages = [
    { registryType: 'npm', identifier: '@example/weather', version: '1.2.3', transport: { type: 'stdio' } },
    { registryType: 'mcpb', identifier: 'https://example.com/weather.mcpb', transport: { type: 'stdio' } }
  ]
  const server = { name: 'com.example/Weather', description: 'Weather.', version: '1.2.3', remotes: [remote], packages }
  await page.getByRole('button', { name: 'Add upstreams' }).click()
  await page.getByLabel('an entry of a registry').check()
  const entry = page.getByRole('textbox', { name: 'Entry of a registry' })
  await entry.fill(JSON.stringify({ server: { ...server, remotes: [], packages: packages.slice(1) } }))
  await page.getByRole('button', { name: 'See what it changes' }).click()
  await page.getByText('The entry has no URL, and no package of npm').waitFor()
  await entry.fill(JSON.stringify({ server, _meta: {} }))
  t.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'weather')
  t.same(await page.getByLabel('Use').locator('option').allInnerTexts(), [remote.url, 'npm @example/weather@1.2.3'])
  await page.getByLabel('Use').selectOption('npm @example/weather@1.2.3')
  t.equal(await page.getByLabel('X-Key *').count(), 0)
  await page.getByLabel('Use').selectOption(remote.url)
  t.same(await violationsInBothThemes(page), [])
  await page.getByLabel('place *').fill('mcp')
  t.equal(await page.getByLabel('X-Key *').getAttribute('type'), 'password')
  await page.getByLabel('X-Key *').fill('open sesame')
  await page.keyboard.press('Enter')
  await page.getByText('weather is connected.').waitFor()
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('link', { name: 'weather' }).waitFor()
  const { json } = await rig.call('GET', '/v1/tenants/team/upstreams/weather')
  t.match(json, { configuration: { url: rig.tickets.url, headers: { 'X-Key': { secret: true } } } })
  await until('it is spoken to', async () => (await rig.tom.request('tools/list')).text.includes('weather__echo'))
  t.same((json as { secrets: string[] }).secrets, ['X-Key', 'X-Region'])
  t.same(complaints, [])
})
