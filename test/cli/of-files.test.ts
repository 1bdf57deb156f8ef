// `status` and `plan` of a configuration file, without a gateway: the upstreams are started and asked for the command.

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { marked } from '../kit/process.ts'
import { startUpstream } from '../kit/upstream.ts'
import { cli } from './kit.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const folder = t.testdir()
const mark = `GATEHOUSE_TEST_MARK_${process.pid}`
const env = { ACME_KEY: 'gh_key_of_the_environment_0123456789' }
const stdioServer = join(import.meta.dirname, '../kit/stdio-server.ts')
const files = { command: process.execPath, args: [stdioServer], env: { [mark]: '1' } }
const auth = { keys: [{ name: 'ci', key: '${ACME_KEY}' }] }
const gone = { url: 'http://127.0.0.1:1/mcp' }
const acme = { auth, upstreams: { files, up: { url: upstream.url }, gone } }
const hooli = { auth: { keys: [{ name: 'h', key: 'gh_key_of_hooli_0123456789' }] }, upstreams: {} }
const written = (name: string, value: unknown): string => {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify(value))
  return file
}
const config = written('gatehouse.json', { store: 'file:./gatehouse.db', tenants: { acme, hooli } })

t.test('status tells the same of a file as of a gateway, and leaves nothing behind', async (t) => {
  const { code, out, err } = await cli(['status', '--config', config], env)
  t.match(out, /^TENANT +UPSTREAM +TRANSPORT +STATE/)
  t.match(out, /\nacme +files +stdio +connected +legacy +2025-11-25 +21 +1 +1 /)
  t.match(out, /\nacme +up +streamable-http +connected +legacy +2025-11-25 +21 /)
  t.match(out, /\nacme +gone +http +away [^]*\nacme\/gone is away since \S+\n +Upstream gone cannot be reached/)
  t.match(err, /ok +acme\/files: 21 tools/)
  t.equal(code, 1, 'one is away')
  const { out: json, code: ofTenant } = await cli(['status', '--config', config, '--tenant', 'hooli', '--json'], env)
  t.same([JSON.parse(json), ofTenant], [[], 0])
  t.same(await marked(mark), [], 'its processes have ended')
  t.notOk(existsSync(join(folder, 'gatehouse.db')), 'its store was not opened')
})

t.test('plan tells what a change of the file would do, a part of it or the whole file', async (t) => {
  const part = written('part.json', { tenants: { acme: { auth, upstreams: { files, up: { url: upstream.url } } } } })
  const { code, out } = await cli(['plan', part, '--config', config], env)
  t.equal(code, 0)
  t.match(parse(out), {
    tenants: [{ tenant: 'acme', change: 'changed', upstreams: [{ upstream: 'gone', change: 'removed' }] }]
  })
  t.equal((parse(out) as { tenants: unknown[] }).tenants.length, 1, 'what it does not name stays')

  const endpoints = { default: { upstreams: ['files', 'up', 'gone'], deny: { tools: ['files/echo'] } } }
  const whole = written('whole.json', { listen: { port: 9_000 }, tenants: { acme: { ...acme, endpoints } } })
  const told = await cli(['plan', whole, '--config', config, '--json'], env)
  t.match(JSON.parse(told.out), {
    tenants: [
      { tenant: 'hooli', change: 'removed' },
      {
        tenant: 'acme',
        change: 'changed',
        endpoints: [{ endpoint: 'default', loses: { names: ['files__echo'] }, unknown: ['gone'] }]
      }
    ],
    afterRestart: ['listen', 'store']
  })
  const same = await cli(['plan', config, '--config', config], env)
  t.same(parse(same.out), { tenants: [], afterRestart: [] })
  t.same(await marked(mark), [])
})

t.test('what cannot be used is said with the name of its file, and starts nothing', async (t) => {
  const [bad, worse] = [{ tenants: { acme: { ...acme, upstream: {} } } }, { listen: { prt: 1 }, tenants: { acme } }]
  const change = await cli(['plan', written('bad.json', bad), '--config', config], env)
  t.match([change.code, change.err], [1, /bad\.json, upstream: is not a known key\. Did you mean "upstreams"/])
  const whole = await cli(['plan', written('worse.json', worse), '--config', config], env)
  t.match([whole.code, whole.out], [1, /worse\.json line 1, listen\.prt: is not a known key\. Did you mean "port"/])
  const of = await cli(['status', '--config', join(folder, 'worse.json')], env)
  t.match([of.code, of.out, of.err], [1, /worse\.json line 1, listen\.prt/, /^$/])
  for (const argv of [
    ['plan', config, '--config', join(folder, 'none.json')],
    ['plan', join(folder, 'none.json'), '--config', config]
  ])
    t.match(await cli(argv, env), { code: 2, err: /none\.json: there is no such file\./ })
  t.match(await cli(['status', '--config', join(folder, 'none.json')], env), { code: 1, out: /there is no such file/ })
})

t.test('the file of a host that is given as a configuration is said to be one', async (t) => {
  const servers = '{ // mine\n "mcpServers": { "a": { "command": "node", "env": { "T": "${NOT_SET}" } } } }'
  const file = join(t.testdir({ 'mcp.json': servers }), 'mcp.json')
  for (const argv of [
    ['status', '--config', file],
    ['tenant', 'list', '--config', file]
  ])
    t.match(await cli(argv), {
      code: 1,
      out: /^\S+mcp\.json: this is the file of a host.* serve --mcp-json \S+mcp\.json\./
    })
  t.match(await cli(['check', file]), { code: 1, out: /^this is an mcp\.json/ }, 'which check reads')
})
