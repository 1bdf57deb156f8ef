// Attack: a cursor of a list is forged, altered, taken to another list, or used by somebody else, to learn what it
// holds or to move about in a list that is not one's own.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'

const limits = { pageSize: 3 }

t.test('a cursor continues only the list and the caller that it was given to', async (t) => {
  const { url } = await acmeGateway(t, { limits })
  const [ada, bob] = [await legacyClient(url(), keyOf.ada), await legacyClient(url(), keyOf.bob)]
  const list = async (client: typeof ada, cursor?: string, method = 'tools/list') =>
    (await client.request(method, cursor === undefined ? {} : { cursor })).json
  const first = await list(ada)
  const cursor = String(first.result.nextCursor)
  const names = (page: { result: { tools: Array<{ name: string }> } }): string[] =>
    page.result.tools.map(({ name }) => name)

  const second = await list(ada, cursor)
  t.equal(second.result.tools.length, 3, 'positive control')
  t.notOk(names(second).some((name) => names(first).includes(name)))
  const again = await legacyClient(url(), keyOf.ada)
  t.same(names(await list(again, cursor)), names(second), 'another session of the same caller may use it')
  const modern = await modernRequest(url(), 'tools/list', { cursor }, { token: keyOf.ada })
  t.same(names(modern.json), names(second), 'and so may a request of 2026-07-28')

  t.equal((await list(bob, cursor)).error?.code, -32602, 'another caller may not')
  t.equal((await list(ada, cursor, 'prompts/list')).error?.code, -32602, 'nor may another list')
  const files = await legacyClient(url('files'), keyOf.ada)
  t.equal((await list(files, cursor)).error?.code, -32602, 'nor the same list of another endpoint')
  const foreign = await modernRequest(url(), 'tools/list', { cursor }, { token: keyOf.bob })
  t.equal(foreign.json.error?.code, -32602)

  for (const altered of [
    `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`,
    cursor.slice(1),
    `${cursor}=`,
    btoa(`after:${names(first).at(-1) ?? ''}`),
    names(first).at(-1)
  ])
    t.equal((await list(ada, altered)).error?.code, -32602, String(altered))
})

t.test('a cursor shows nothing of what it names', async (t) => {
  const { url } = await acmeGateway(t, { limits })
  const ada = await legacyClient(url(), keyOf.ada)
  const { json } = await ada.request('tools/list', {})
  const cursor = String(json.result.nextCursor)
  t.match(cursor, /^[A-Za-z0-9_-]+$/)
  const readable = cursor + Buffer.from(cursor, 'base64').toString('latin1')
  for (const { name } of json.result.tools) t.notOk(readable.includes(name), name)
})
