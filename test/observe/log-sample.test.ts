// Arguments and results stand in the log only of a tenant that wants it: shortened, and without what its name says is
// secret.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'

const args = {
  note: 'of an argument',
  apiKey: 'SECRET-1',
  deep: [{ password: { old: 'SECRET-2' } }],
  long: 'x'.repeat(5_000)
}

t.test('a tenant that wants a sample has one, redacted, in both eras; another one has none', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const tenant = { auth: { keys: [{ name: 'test', key }] }, upstreams: { up: { url: upstream.url } } }
  const made = await gateway(t, {
    upstreams: { up: { url: upstream.url } },
    tenants: {
      sampled: { ...tenant, logSample: { percent: 100 } },
      results: { ...tenant, logSample: { percent: 100, arguments: false, redact: ['note'] } }
    }
  })
  const lines = async (id: string) => {
    const client = await legacyClient(made.url('default', id), key)
    const before = made.log.length
    await client.request('tools/call', { name: 'up__echo', arguments: args })
    await modernRequest(made.url('default', id), 'tools/call', { name: 'up__echo', arguments: args }, { token: key })
    await client.request('tools/call', { name: 'up__none', arguments: args })
    await client.request('tools/list', {})
    return made.log.slice(before).filter(({ msg }) => msg === 'call')
  }
  const sampled = await lines('sampled')
  t.equal(sampled.length, 4)
  for (const line of sampled.slice(0, 2)) {
    t.match(
      line['arguments'],
      /^\{"note":"of an argument","apiKey":"\[redacted\]","deep":\[\{"password":"\[redacted\]"\}\],"long":"x+$/
    )
    t.equal(String(line['arguments']).length, 2_000)
    t.match(line['result'], 'of an argument')
  }
  t.match(sampled[2], { outcome: 'invalid_params', arguments: /of an argument/ })
  t.same([sampled[2]?.['result'], sampled[3]?.['arguments'], sampled[3]?.['result']], [undefined, undefined, undefined])
  t.notMatch(JSON.stringify(sampled.map((line) => line['arguments'])), 'SECRET')

  for (const line of await lines('results')) t.equal(line['arguments'], undefined)
  const before = made.log.length
  t.equal((await lines('acme')).length, 4)
  t.notMatch(JSON.stringify(made.log.slice(before)), 'of an argument', 'nothing of a tenant that wants none')
})
