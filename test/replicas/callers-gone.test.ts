// Callers who are taken out of the configuration while no replica has a connection for their sessions: the servers hear
// of the end of each, once.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send, type LegacyClient } from '../kit/client.ts'
import { allCapabilities, post } from '../kit/server-request.ts'
import { startStateful } from '../kit/stateful-server.ts'
import { until } from '../kit/until.ts'
import { startReplicas } from './rig.ts'

const server = await startStateful(t)
const upstreams = { state: { type: 'http', url: server.url } }
const whole = { upstreams: ['state'], prefix: '' }
const endpoints = { default: whole, extra: whole }
const globex = { auth: { keys: [{ name: 'eve', key: 'the-key-of-eve-at-globex' }] }, upstreams, endpoints }
const rig = await startReplicas(t, { upstreams, endpoints, tenants: { globex } }, [{}, {}, {}])

async function tool(url: string, client: LegacyClient, name: string, args: object = {}): Promise<string> {
  const params = { name, arguments: args }
  const { json, text } = await post(url, client, { id: `${name} ${Math.random()}`, method: 'tools/call', params })
  return String(json?.result?.content?.[0]?.text ?? text)
}

const idOf = (value: string): string | undefined =>
  server.seen.find(({ message }) => message?.params?.arguments?.value === value)?.session
const endsOf = (value: string): number =>
  server.seen.filter(({ method, session }) => method === 'DELETE' && session === idOf(value)).length

t.test('a key, an endpoint and a tenant that the configuration has no more', async (t) => {
  const [left, right, home] = rig.nodes
  const gone = {
    'of a key': [keyOf.bob, 't/acme/mcp'],
    'of an endpoint': [keyOf.ada, 't/acme/extra/mcp'],
    'of a tenant': [globex.auth.keys[0]!.key, 't/globex/mcp']
  } as const
  const all = { ...gone, 'of one that stays': [keyOf.ada, 't/acme/mcp'] } as const
  const clients = new Map<string, LegacyClient>()
  for (const [value, [key, path]] of Object.entries(all)) {
    const client = await legacyClient(rig.at(2, path), key, '2025-11-25', allCapabilities)
    t.equal(await tool(rig.at(2, path), client, 'set', { value }), value)
    clients.set(value, client)
  }
  home?.signal('SIGKILL')
  await home?.ended

  for (const node of [left, right]) {
    const file = join(node?.folder ?? '', 'gatehouse.json')
    const config = JSON.parse(await readFile(file, 'utf8'))
    const { acme } = config.tenants
    acme.auth.keys = acme.auth.keys.filter(({ name }: { name: string }) => name !== 'bob')
    delete acme.endpoints.extra
    config.tenants = { acme }
    await writeFile(file, JSON.stringify(config))
    node?.signal('SIGHUP')
  }
  for (const value of Object.keys(gone))
    await until(`the server has heard of the end: ${value}`, () => !server.knows(idOf(value)))

  const stays = clients.get('of one that stays')!
  t.equal(await tool(rig.at(1), stays, 'get'), 'of one that stays', 'the control')
  t.equal((await send(rig.at(0), { method: 'DELETE', headers: stays.headers })).status, 204)
  // By then each replica has looked for what is left.
  await until('the server has heard of the end', () => !server.knows(idOf('of one that stays')))
  t.same(Object.keys(all).map(endsOf), [1, 1, 1, 1])
})
