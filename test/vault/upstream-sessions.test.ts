// A session at a server over HTTP goes on at another replica with the secret that it was begun with, and with no other.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { type LegacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { replicas } from '../kit/replicas.ts'
import { post } from '../kit/server-request.ts'
import { startStateful } from '../kit/stateful-server.ts'
import { until } from '../kit/until.ts'
import { sessionAt } from '../replicas/rig.ts'

const server = await startStateful(t)
const options = {
  upstreams: {
    state: { type: 'http', url: server.url, auth: { type: 'userSecret', header: 'X-Secret', prefix: '' } }
  },
  endpoints: { default: { upstreams: ['state'], prefix: '' } },
  auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
  top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
}

async function tool(url: string, client: LegacyClient, name: string, args: object = {}): Promise<string> {
  const params = { name, arguments: args }
  const { json, text } = await post(`${url}/t/acme/mcp`, client, { id: name, method: 'tools/call', params })
  return String(json?.result?.content?.[0]?.text ?? text)
}

const lastSecret = (): string | undefined =>
  server.seen.findLast(({ message }) => message?.params?.name === 'get')?.headers['x-secret']?.toString()

t.test('the next replica goes on with the same secret, and begins a new session with another', async (t) => {
  const { nodes, origin, targets } = await replicas(t, options, [{}, {}])
  const [first, next] = [nodes[0]!, nodes[1]!]
  const { tab, page } = await signedIn(`${origin}/t/acme/connections`, keyOf.ada)
  const entered = await submit(tab, page, 'secret', { secret: 'the-first-secret' })
  const client = await sessionAt(`${first.url}/t/acme/mcp`)
  t.equal(await tool(first.url, client, 'set', { value: 'of the first' }), 'of the first')
  targets.shift()
  first.signal('SIGKILL')
  await first.ended
  t.equal(await tool(next.url, client, 'get'), 'of the first', 'the control')
  t.equal(lastSecret(), 'the-first-secret')

  const empty = await submit(tab, entered, 'disconnect')
  await submit(tab, empty, 'secret', { secret: 'the-second-secret' })
  await until('the second is shown', async () => {
    await tool(next.url, client, 'get')
    return lastSecret() === 'the-second-secret'
  })
  t.equal(await tool(next.url, client, 'get'), 'nothing')
  const secretsOf = new Map<string | undefined, Set<unknown>>()
  for (const { session, headers } of server.seen)
    secretsOf.set(session, (secretsOf.get(session) ?? new Set()).add(headers['x-secret']))
  secretsOf.delete(undefined)
  for (const secrets of secretsOf.values()) t.equal(secrets.size, 1, 'no session hears two of them')
})
