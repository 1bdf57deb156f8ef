// Limits of calls over several processes: together they let as many calls through as one would.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { post } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { stdioServer } from '../abuse/kit.ts'
import { startReplicas } from './rig.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const rig = await startReplicas(t, {
  upstreams: { up: { type: 'http', url: upstream.url, isolation: 'shared' }, local: stdioServer() },
  endpoints: {
    default: { upstreams: ['up'], prefix: '' },
    bound: { upstreams: ['local'], prefix: '' }
  },
  callLimits: {
    hundred: { per: ['principal'], who: { keys: ['ada'] }, what: { upstreams: ['up'] }, perDay: 100 },
    three: { what: { upstreams: ['local'] }, perDay: 3 }
  }
})
const call = (node: number, token: string = keyOf.ada) =>
  modernRequest(rig.at(node), 'tools/call', { name: 'echo', arguments: {} }, { token })

t.test('of three hundred calls at three replicas at once a quota of a hundred lets a hundred through', async (t) => {
  const round = async (): Promise<number> => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => call(n % 3)))
    for (const { status } of answers) if (status !== 200 && status !== 429) throw new Error(`answered ${status}`)
    return answers.filter(({ status }) => status === 200).length
  }
  let through = (await round()) + (await round()) + (await round())
  // What one of them has in hand the others get after a moment.
  await until('all are spent', async () => (through += await round()) >= 100)
  t.equal(through + (await round()), 100)
  t.equal(upstream.server.calls('echo'), 100)
  t.match(await call(0, keyOf.bob), { status: 200 }, 'others go on')
})

t.test('a quota stays used up at a replica that starts later', async (t) => {
  const { url } = await rig.start()
  const late = await modernRequest(`${url}/t/acme/mcp`, 'tools/call', { name: 'echo' }, { token: keyOf.ada })
  t.match(late, { status: 429, json: { error: { data: { reason: 'quota_exceeded' } } } })
})

t.test('a call that runs at the home of its session is refused with status and headers where it came', async (t) => {
  const path = 't/acme/bound/mcp'
  const client = await legacyClient(rig.at(0, path), keyOf.ada)
  const ask = (node: number, id: string) =>
    post(rig.at(node, path), client, { id, method: 'tools/call', params: { name: 'echo', arguments: {} } })
  for (const node of [0, 1, 2]) t.match(await ask(node, `at ${node}`), { status: 200, json: { result: {} } })
  for (const node of [0, 1, 2]) {
    const { status, headers, json } = await ask(node, `again at ${node}`)
    t.equal(status, 429)
    t.match(json.error.data, { reason: 'quota_exceeded', limit: 'three' })
    t.equal(headers['ratelimit-policy'], '"three-day";q=3;w=86400')
    t.match(headers['ratelimit'], /^"three-day";r=0;t=\d+$/)
    t.equal(headers['retry-after'], /t=(\d+)/.exec(String(headers['ratelimit']))?.[1])
    const id = String(headers['x-request-id'])
    const lines = await until('the log tells of it', () => {
      const found = rig.nodes.flatMap(({ log }) => log()).filter((line) => JSON.stringify(line).includes(id))
      return found.length > 0 ? found : undefined
    })
    t.equal(lines.length, 1, 'once, over all replicas')
    t.match(lines[0], { method: 'tools/call', outcome: 'quota_exceeded', apiKey: 'ada' })
  }
})
