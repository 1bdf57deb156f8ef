// Who is still known after the configuration has changed.

import t from 'tap'
import { anonymousPrincipal, isConfiguredPrincipal, keyPrincipal, type Principal } from '../../src/auth/principal.ts'
import type { AuthConfig, IssuerConfig } from '../../src/config/auth/auth-config.ts'
import { tenantId } from '../../src/protocol/messages.ts'

const acme = tenantId('acme')
const ada = { name: 'ada', sha256: '', scopes: ['use'] }
const issuer = { issuer: 'https://login.example' } as IssuerConfig
const token: Principal = { ...keyPrincipal(acme, ada), kind: 'token', issuer: issuer.issuer }
const auth = (more: Partial<AuthConfig> = {}): AuthConfig => ({
  mode: 'bearer',
  issuers: [issuer],
  keys: [ada],
  requiredScopes: [],
  leewaySeconds: 0,
  ...more
})

t.test('a key as long as there is one of its name that may use endpoints', async (t) => {
  const principal = keyPrincipal(acme, ada)
  t.ok(isConfiguredPrincipal(principal, auth()))
  t.ok(isConfiguredPrincipal(principal, auth({ requiredScopes: ['use'] })))
  t.notOk(isConfiguredPrincipal(principal, auth({ requiredScopes: ['use', 'more'] })))
  t.notOk(isConfiguredPrincipal(principal, auth({ keys: [{ ...ada, name: 'bob' }] })))
})

t.test('a token as long as its issuer is trusted', async (t) => {
  t.ok(isConfiguredPrincipal(token, auth({ keys: [] })))
  t.notOk(isConfiguredPrincipal(token, auth({ issuers: [] })), 'whatever key has the name of its subject')
})

t.test('without authentication everybody is nobody, and with it nobody is', async (t) => {
  const open = auth({ mode: 'none' })
  t.ok(isConfiguredPrincipal(anonymousPrincipal(acme), open))
  t.notOk(isConfiguredPrincipal(anonymousPrincipal(acme), auth()))
  t.notOk(isConfiguredPrincipal(keyPrincipal(acme, ada), open))
})
