// The example of docs/login.md is a configuration that can be used.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { compileConfig } from '../../src/config/load.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'login.md'), 'utf8')

t.test('the example compiles as it stands, but for the upstreams and where the secret is', async (t) => {
  const [, example = ''] = /```yaml\n([^`]*)```/.exec(page) ?? []
  const text = `${example.replace(/\$\{file:[^}]*\}/, 'secret')}    upstreams: {}\n`
  const { tenants } = compileConfig(text, { path: '/srv/gatehouse/gatehouse.yaml', env: {} })
  t.match(
    [...tenants.values()],
    [{ auth: { login: { issuer: 'https://mcp.example.com/login/acme', name: 'Acme Corporation', scopes: ['mcp'] } } }]
  )
})
