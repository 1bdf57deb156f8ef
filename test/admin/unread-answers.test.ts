// Long answers of the admin API, and whoever asks for them and does not read: what waits counts for the tenant of the
// administrator, and is given back when the connection is gone.

import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const MiB = 1024 * 1024
const path = '/v1/tenants/acme/endpoints/default/catalog'
/** A list is not longer; together they are more than sockets take. */
const description = `é ${'x'.repeat(1_000_000)}`
const tools = [{ name: 'long', description, inputSchema: { type: 'object' } }]
const upstreamNames = ['a', 'b', 'c', 'd', 'e', 'f']
const listBytes = upstreamNames.length * description.length

t.test('answers that nobody reads count for the tenant, and leave room for those of others', async (t) => {
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const memory = createMemoryAccount(96 * MiB)
  const { call, adminUrl, gateway } = await adminGateway(t, {
    upstreams: Object.fromEntries(upstreamNames.map((name) => [name, { type: 'http', url: upstream.url }])),
    endpoints: { default: { upstreams: upstreamNames } },
    overrides: { memory }
  })
  await gateway.warm()
  const atRest = memory.held
  const ask = async (): Promise<IncomingMessage> => {
    const headers = { authorization: `Bearer ${adminKeys.acme}`, 'content-type': 'application/json' }
    const outgoing = request(adminUrl + path, { method: 'POST', agent: false, headers })
    outgoing.on('error', () => {})
    outgoing.end(JSON.stringify({ definitions: true, limit: 200 }))
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    answer.on('error', () => {})
    return answer
  }
  // The tenant may hold half of all, and its administrators half of that.
  const unread: IncomingMessage[] = []
  t.teardown(() => unread.forEach((answer) => answer.destroy()))
  let refused: IncomingMessage | undefined
  while (refused === undefined && unread.length < 10) {
    const answer = await ask()
    if (answer.statusCode === 200) unread.push(answer)
    else refused = answer
  }
  t.equal(refused?.statusCode, 429)
  t.ok(memory.held - atRest >= unread.length * listBytes, `${memory.held - atRest} bytes of ${unread.length} count`)
  const body = { definitions: true, limit: 200 }
  t.equal((await call('POST', path, { key: adminKeys.acme, body: { limit: 1 } })).status, 200, 'a short one is sent')
  const whole = await call('POST', path, { key: adminKeys.platform, body })
  t.equal(whole.status, 200, 'whoever runs the gateway gets it')
  t.equal(Number(whole.headers['content-length']), Buffer.byteLength(whole.text))
  const { items } = whole.json as { items: Array<{ definition: { description: string } }> }
  t.ok(items.length === upstreamNames.length && items.every((each) => each.definition.description === description))

  unread.pop()?.destroy()
  await until('one is given back', () => memory.held - atRest < unread.length * listBytes + MiB)
  const read = await call('POST', path, { key: adminKeys.acme, body })
  t.equal(read.text, whole.text, 'there is room for one that is read')
  for (const answer of unread) answer.destroy()
  await until('all is given back', () => memory.held <= atRest)
})
