// What the profile `idp` of docker-compose.yml says fits together: its secrets can be made, the gateway's configuration
// is one, and Dex and Keycloak know it as the client that it says it is. What they do is not tried here.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { compileConfig } from '../../src/config/load.ts'
import { tenantId } from '../../src/protocol/messages.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const port = '18082'

const secrets = t.testdir()
for (const folder of ['redis', 'gateway', 'authorization', 'metrics', 'idp'])
  mkdirSync(join(secrets, folder), { recursive: true })
const secret = (name: string): string => readFileSync(join(secrets, name), 'utf8').trim()

/** As in the container: the folder of the secrets is a volume. */
function makeSecrets(): void {
  const script = read('deploy/authorization-server/make-secrets.sh').replaceAll('=/secrets/', `=${secrets}/`)
  execFileSync('sh', ['-c', script], { stdio: ['ignore', 'ignore', 'ignore'] })
}

t.before(makeSecrets)

t.test('secrets are made once, and the digest is that of the password', async (t) => {
  const before = ['client-secret', 'password', 'password.bcrypt'].map((name) => secret(`idp/${name}`))
  makeSecrets()
  const after = ['client-secret', 'password', 'password.bcrypt'].map((name) => secret(`idp/${name}`))
  t.same(after, before)
  const [clientSecret, password = '', digest = ''] = after
  t.match(clientSecret, /^[0-9a-f]{64}$/)
  t.match(digest, /^\$2b\$10\$[./A-Za-z0-9]{53}$/)
  t.equal(execFileSync('perl', ['-e', 'print crypt($ARGV[0], $ARGV[1])', password, digest]).toString(), digest)
})

function gateway() {
  const text = read('deploy/compose/idp/gatehouse.yaml')
    .replaceAll('/run/secrets/', `${secrets}/gateway/`)
    .replaceAll('/run/idp/', `${secrets}/idp/`)
  return compileConfig(text, { path: join(secrets, 'gatehouse.yaml'), env: { GATEHOUSE_IDP_PORT: port } })
}

function loginOf(tenant: string) {
  const login = gateway().tenants.get(tenantId(tenant))?.auth.login
  if (login === undefined) throw new Error(`${tenant} has no login front`)
  return login
}

const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { environment?: Record<string, string>; networks?: { inside?: { aliases: string[] } } }>
}

t.test('Dex knows the gateway as the client that it is', async (t) => {
  const text = read('deploy/compose/idp/dex.yaml')
    .replace('{{ getenv "GATEHOUSE_IDP_PORT" "8082" }}', port)
    .replaceAll(/\{\{ file\.Read "\/run\/idp\/([\w.-]+)" \| strings\.TrimSpace \}\}/g, (_, name: string) =>
      secret(`idp/${name}`)
    )
  t.notMatch(text, /\{\{/)
  const { issuer, web, staticClients, staticPasswords } = parse(text) as {
    issuer: string
    web: { http: string }
    staticClients: Array<{ id: string; secret: string; redirectURIs: string[] }>
    staticPasswords: Array<{ hash: string; groups: string[] }>
  }
  const { provider, issuer: front } = loginOf('dex')
  t.match(provider, { issuer, clientId: staticClients[0]?.id, clientSecret: staticClients[0]?.secret })
  t.ok(provider.scopes.includes('groups'), 'Dex tells groups to those alone who ask')
  t.same(staticClients[0]?.redirectURIs, [`${front}/callback`])
  t.equal(staticPasswords[0]?.hash, secret('idp/password.bcrypt'))
  const { hostname, port: at } = new URL(issuer)
  t.same(services['dex']?.networks?.inside?.aliases, [hostname])
  t.equal(web.http, `0.0.0.0:${at}`)
})

t.test('Keycloak knows the gateway as the client that it is', async (t) => {
  const text = read('deploy/compose/idp/keycloak.json')
  t.same(
    new Set(text.match(/\$\{\w+\}/g)),
    new Set(['${IDP_PASSWORD}', '${IDP_CLIENT_SECRET}', '${GATEHOUSE_IDP_PORT}'])
  )
  const { realm, clients } = JSON.parse(text.replaceAll('${GATEHOUSE_IDP_PORT}', port)) as {
    realm: string
    clients: Array<{ clientId: string; redirectUris: string[]; attributes: Record<string, string> }>
  }
  const { provider, issuer: front } = loginOf('keycloak')
  const { KC_HOSTNAME: origin = '', KC_HTTP_PORT: at } = services['keycloak']?.environment ?? {}
  t.equal(provider.issuer, `${origin}/realms/${realm}`)
  t.equal(at, new URL(origin).port)
  t.same(services['keycloak']?.networks?.inside?.aliases, [new URL(origin).hostname])
  const [client] = clients
  t.equal(client?.clientId, provider.clientId)
  t.same(client?.redirectUris, [`${front}/callback`])
  t.equal(client?.attributes['post.logout.redirect.uris'], `${front}/session/end/success`)
})
