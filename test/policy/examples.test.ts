// The examples of docs/policy.md: each answers as its table says.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import type { Principal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import { createAccess } from '../../src/policy/access.ts'
import { factsOf } from '../../src/policy/rules.ts'
import { endpointName, tenantId } from '../../src/protocol/messages.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/policy.md'), 'utf8')
const examples = page.split(/^### /m).slice(1)

interface Caller {
  readonly subject?: string
  readonly key?: string
  readonly scopes?: string[]
  readonly groups?: string[]
}

const principalOf = ({ subject = 'somebody', key, scopes = [], groups = [] }: Caller): Principal => ({
  kind: key === undefined ? 'token' : 'key',
  tenant: tenantId('acme'),
  issuer: key === undefined ? 'https://idp.example.com' : 'urn:gatehouse:key',
  subject: key ?? subject,
  clientId: 'app',
  scopes: new Set(scopes),
  groups,
  roles: [],
  expiresAt: undefined
})

t.ok(examples.length >= 3)
for (const example of examples) {
  const [title = ''] = example.split('\n')
  t.test(title, async (t) => {
    const yaml = /```yaml\n([^`]*)```/.exec(example)?.[1] ?? ''
    const auth = { issuers: [{ issuer: 'https://idp.example.com' }] }
    const config = { tenants: { acme: { auth, ...(parse(yaml) as object) } } }
    const acme = compileConfig(JSON.stringify(config), { path: 'x', env: {} }).tenants.get(tenantId('acme'))
    const endpoint = acme?.endpoints.get(endpointName('default'))
    if (acme === undefined || endpoint === undefined) throw new Error('no endpoint')
    const rows = [...example.matchAll(/^\| `(.*)` \| `(\S+) (\S+)( \{.*\})?` \| (.*) \|$/gm)]
    t.ok(rows.length >= 3)
    for (const [, caller = '', upstream = '', name = '', args = '{}', answer] of rows) {
      const principal = principalOf(parse(caller) as Caller)
      const decision = createAccess()(acme, endpoint, principal)?.('tool', { upstream, name })
      const facts = {
        args: parse(args) as Record<string, unknown>,
        name,
        principal: factsOf(principal),
        now: new Date()
      }
      const verdict = decision?.decideCall?.(facts)
      const scopes = verdict?.scopes ?? decision?.scopes ?? []
      const missing = scopes.filter((scope) => !principal.scopes.has(scope))
      const given =
        decision?.isListed !== true
          ? 'denied'
          : verdict?.refusedBy !== undefined
            ? `refused by ${verdict.refusedBy}`
            : missing.length > 0
              ? `needs ${missing.join(' ')}`
              : 'allowed'
      t.equal(given, answer, `${caller} ${name} ${args}`)
    }
  })
}
