// A configuration file that is taken anew is in the audit log of each tenant that it changes, made and removed ones
// too, and in that of the gateway itself where something else changes; one that changes nothing is not.

import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { configOf, gateway, key, type TestGatewayOptions } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { recordsIn, report } from './kit.ts'

const secret = 'gh_key_that_is_in_no_record'
const tenant = { auth: { keys: [{ name: 'ian', key: secret }] }, upstreams: {} }

t.test('what a reload changes is recorded, by the file, with keyed digests', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const options: TestGatewayOptions = {
    upstreams: {},
    tenants: { globex: tenant, umbrella: tenant },
    top: { audit: { store: false, file } }
  }
  const made = await gateway(t, options)
  interface Config {
    readonly tenants: Record<string, object>
  }
  const config = configOf(options) as Config
  const { umbrella: _removed, ...rest } = config.tenants
  const changes = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'change')
  const calls = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'call').length

  made.reload(config)
  await modernRequest(made.url(), 'tools/list', {}, { token: key })
  await until('a call is recorded', async () => (await calls()) === 1)
  t.same(await changes(), [], 'nothing has changed')

  const origins = ['https://a.example']
  made.reload({ ...config, tenants: { ...rest, globex: { ...tenant, origins }, initech: tenant } })
  await until('three tenants are recorded', async () => (await changes()).length === 3)
  const digest = /^[0-9a-f]{64}$/
  const by = { kind: 'file' }
  const action = 'configuration.reload'
  t.match(
    (await changes()).sort((a, b) => (String(a['target']) < String(b['target']) ? -1 : 1)),
    [
      { by, action, target: 'globex', before: digest, after: digest, chain: /^globex\// },
      { by, action, target: 'initech', before: undefined, after: digest, chain: /^initech\// },
      { by, action, target: 'umbrella', before: digest, after: undefined, chain: /^umbrella\// }
    ]
  )

  made.reload({ ...config, tenants: { ...rest, globex: { ...tenant, origins }, initech: tenant }, logLevel: 'warn' })
  await until('what belongs to no tenant is recorded', async () => (await changes()).length === 4)
  t.match((await changes()).at(-1), { by, action, target: 'configuration', chain: /^\(gateway\)\// })
  await made.close()
  const text = await readFile(file, 'utf8')
  t.notMatch(text, secret)
  t.match(await report(text, Date.now()), { problems: [] })
})
