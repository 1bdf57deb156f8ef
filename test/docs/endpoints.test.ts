// The examples of docs/endpoints.md do what the page says.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'endpoints.md'), 'utf8')
const examples = [...page.matchAll(/```yaml\n([^`]*)```/g)].map(([, text = '']) => parse(text) as object)

t.test('the examples of the page are one configuration, whose endpoints offer what it says', async (t) => {
  const tool = (name: string) => ({ name, inputSchema: { type: 'object', properties: { team: {}, limit: {} } } })
  const tickets = await startUpstream({ tools: ['search', 'delete'].map(tool), prompts: [] })
  const files = await startUpstream({ tools: ['write', 'read', 'read_all', 'delete'].map(tool), prompts: [] })
  for (const each of [tickets, files]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { tickets: { type: 'http', url: tickets.url }, files: { type: 'http', url: files.url } },
    endpoints: Object.assign({}, ...examples) as Record<string, unknown>
  })
  const offered: Record<string, readonly string[]> = {
    support: ['tickets__search', 'files__read', 'files__read_all'],
    sales: ['find_sales_tickets', 'tickets__delete'],
    lean: ['tickets__search', 'tickets__delete'],
    small: ['tickets__search', 'tickets__delete', 'files__read']
  }
  t.equal(examples.length, Object.keys(offered).length)
  for (const [name, tools] of Object.entries(offered)) {
    const client = await legacyClient(acme.url(name), key)
    const { json } = await client.request('tools/list')
    t.same(
      (json as { result: { tools: Array<{ name: string }> } }).result.tools.map((each) => each.name),
      tools,
      name
    )
    if (name !== 'support') continue
    const read = async (uri: string) =>
      (await client.request('resources/read', { uri: `gatehouse://files/${uri}` })).json
    t.match(await read('file:///srv/open/../private/x'), { error: { data: { reason: 'resource_not_found' } } })
    t.match(await read('file:///srv/private/x'), { error: {} })
    t.match(await read('file:///srv/open/x'), { result: {} })
  }
})
