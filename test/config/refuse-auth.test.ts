import t from 'tap'
import { base, goodKey, problemsOf, refusals, withValue } from './kit.ts'

const acme = ['tenants', 'acme']
const auth = [...acme, 'auth']
const key = [...auth, 'keys', 0]
const issuer = [...auth, 'issuers', 0]
const reach = (host: string) => ({ ...base(), listen: { host }, publicUrl: 'https://mcp.example.com' })

const front = { provider: { issuer: 'https://idp.example.com/acme', clientId: 'gatehouse', clientSecret: 'abc' } }
const signIn = { issuer: 'https://idp.example.com', clientId: 'gatehouse', clientSecret: 'abc' }
const named = () => ({ ...base(), publicUrl: 'https://mcp.example.com' })

refusals(t, [
  {
    name: 'a login front without a public URL is refused',
    steps: ['publicUrl'],
    bad: undefined,
    good: 'https://mcp.example.com',
    start: withValue([...auth, 'login'], front),
    path: 'tenants.acme.auth.login',
    message: /needs publicUrl/
  },
  {
    name: 'a login front whose provider has a placeholder is refused',
    steps: [...auth, 'login', 'provider', 'issuer'],
    bad: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    good: 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0',
    start: withValue([...auth, 'login'], front, named()),
    path: 'tenants.acme.auth.login.provider.issuer',
    message: /people sign in at one provider/
  },
  {
    name: 'a login front at the shared issuer of a product is refused',
    steps: [...auth, 'login', 'provider', 'issuer'],
    bad: 'https://login.microsoftonline.com/common/v2.0',
    good: 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0',
    start: withValue([...auth, 'login'], front, named()),
    path: 'tenants.acme.auth.login.provider.issuer',
    message: /no issuer of Microsoft Entra ID/
  },
  {
    name: 'a login front that asks its provider for no openid is refused',
    steps: [...auth, 'login'],
    bad: { provider: { ...front.provider, scopes: ['profile'] } },
    good: { provider: { ...front.provider, scopes: ['openid'] } },
    start: named(),
    path: 'tenants.acme.auth.login.provider.scopes',
    message: /no openid/
  },
  {
    name: 'a login front that cannot give a scope that everybody needs is refused',
    steps: [...auth, 'requiredScopes'],
    bad: ['mcp', 'admin'],
    good: ['mcp'],
    start: withValue([...auth, 'login'], front, named()),
    path: 'tenants.acme.auth.login.scopes',
    message: /lacks admin/
  },
  {
    name: 'a login front without scopes is refused',
    steps: [...auth, 'login'],
    bad: { ...front, scopes: [] },
    good: { ...front, scopes: ['tools'] },
    start: named(),
    path: 'tenants.acme.auth.login.scopes',
    message: /at least 1|empty/
  },
  {
    name: 'the login front of a tenant is no issuer of its file',
    steps: [...issuer, 'issuer'],
    bad: 'https://mcp.example.com/login/acme',
    good: 'https://mcp.example.com/login/other',
    start: withValue([...auth, 'login'], front, named()),
    path: 'tenants.acme.auth.issuers',
    message: /is the login front of the tenant/
  },
  {
    name: 'people sign in at an issuer of their tenant only',
    steps: [...auth, 'signIn'],
    bad: { ...signIn, issuer: 'https://other.example.com' },
    good: signIn,
    start: withValue([...issuer, 'issuer'], signIn.issuer),
    path: 'tenants.acme.auth.signIn.issuer',
    message: /none of the issuers/
  },
  {
    name: 'a sign-in that asks for no openid is refused',
    steps: [...auth, 'signIn'],
    bad: { ...signIn, scopes: ['profile'] },
    good: signIn,
    start: withValue([...issuer, 'issuer'], signIn.issuer),
    path: 'tenants.acme.auth.signIn.scopes',
    message: /no openid/
  },
  {
    name: 'a sign-in beside a login front is refused',
    steps: [...auth, 'login'],
    bad: front,
    good: undefined,
    start: withValue([...auth, 'signIn'], signIn, withValue([...issuer, 'issuer'], signIn.issuer, named())),
    path: 'tenants.acme.auth.signIn',
    message: /of no use beside login/
  },
  { name: 'a tenant without auth is refused', steps: auth, bad: undefined, good: 'none', message: /^is missing$/ },
  {
    name: 'an auth that lets nobody in is refused',
    steps: auth,
    bad: {},
    good: { keys: [{ name: 'a', key: goodKey }] },
    message: /lets nobody in/
  },
  {
    name: 'auth none is refused beyond loopback',
    steps: auth,
    bad: 'none',
    good: { keys: [{ name: 'a', key: goodKey }] },
    start: reach('0.0.0.0'),
    message: /must not be none/
  },
  {
    name: 'auth none is refused behind a public name, where a proxy brings everybody in',
    steps: ['publicUrl'],
    bad: 'https://mcp.example.com',
    good: 'http://127.0.0.1:9000',
    start: withValue(auth, 'none'),
    path: 'tenants.acme.auth',
    message: /must not be none/
  },
  { name: 'another word than none is refused', steps: auth, bad: 'off', good: 'none', message: /must be none or/ },
  {
    name: 'a short key is refused',
    steps: [...key, 'key'],
    bad: 'q7Xw2Zr9Lk4Vb8N',
    good: goodKey,
    message: /shorter than 16/
  },
  {
    name: 'the word changeme is refused however long',
    steps: [...key, 'key'],
    bad: 'changeme-changeme',
    good: goodKey,
    message: /placeholder/
  },
  {
    name: 'a key of repeated letters is refused',
    steps: [...key, 'key'],
    bad: 'abababababababababab',
    good: goodKey,
    message: /easily guessed/
  },
  {
    name: 'a key that no bearer can carry is refused',
    steps: [...key, 'key'],
    bad: 'q7Xw2Zr9 Lk4Vb8Nt',
    good: goodKey,
    message: /cannot be sent/
  },
  {
    name: 'a digest that is none is refused',
    steps: key,
    bad: { name: 'ci', sha256: 'abc' },
    good: { name: 'ci', sha256: 'aB'.repeat(32) },
    path: 'tenants.acme.auth.keys[0].sha256',
    message: /64 hexadecimal/
  },
  {
    name: 'a key without a secret is refused',
    steps: key,
    bad: { name: 'ci' },
    good: { name: 'ci', key: goodKey },
    message: /neither key nor sha256/
  },
  {
    name: 'a key given twice over is refused',
    steps: key,
    bad: { name: 'ci', key: goodKey, sha256: 'ab'.repeat(32) },
    good: { name: 'ci', key: goodKey },
    message: /both key and sha256/
  },
  {
    name: 'two keys of one name are refused',
    steps: [...auth, 'keys', 1],
    bad: { name: 'ci', key: `${goodKey}1` },
    good: { name: 'cd', key: `${goodKey}1` },
    path: 'tenants.acme.auth.keys[1].name',
    message: /same name as that of entry 1/
  },
  {
    name: 'two equal keys are refused',
    steps: [...auth, 'keys', 1],
    bad: { name: 'cd', key: goodKey },
    good: { name: 'cd', key: `${goodKey}1` },
    message: /same key as entry 1/
  },
  {
    name: 'a scope with a space is refused',
    steps: [...key, 'scopes'],
    bad: ['a b'],
    good: ['a', 'b'],
    path: 'tenants.acme.auth.keys[0].scopes[0]',
    message: /one scope/
  },
  {
    name: 'an issuer over plain http is refused',
    steps: [...issuer, 'issuer'],
    bad: 'http://idp.example.com',
    good: 'http://127.0.0.1:9000/realms/a',
    message: /plain http/
  },
  {
    name: 'an issuer with a query is refused',
    steps: [...issuer, 'issuer'],
    bad: 'https://idp.example.com/?a',
    good: 'https://idp.example.com/a',
    message: /query/
  },
  {
    name: 'an issuer named twice is refused',
    steps: [...auth, 'issuers', 1],
    bad: { issuer: 'https://idp.example.com' },
    good: { issuer: 'https://idp2.example.com' },
    path: 'tenants.acme.auth.issuers[1].issuer',
    message: /same issuer as entry 1/
  },
  {
    name: 'keys over plain http are refused',
    steps: [...issuer, 'jwksUri'],
    bad: 'http://idp.example.com/jwks',
    good: 'https://idp.example.com/jwks?v=1',
    message: /plain http/
  },
  { name: 'HS256 is refused', steps: [...issuer, 'algorithms', 0], bad: 'HS256', good: 'ES256', message: /HMAC/ },
  {
    name: 'unsigned tokens are refused',
    steps: [...issuer, 'algorithms', 0],
    bad: 'none',
    good: 'EdDSA',
    message: /not signed/
  },
  {
    name: 'an empty list of algorithms is refused',
    steps: [...issuer, 'algorithms'],
    bad: [],
    good: ['RS256'],
    message: /empty/
  },
  {
    name: 'an audience that any service could have is refused',
    steps: [...issuer, 'audiences', 0],
    bad: 'mcp',
    good: 'https://mcp.example.com',
    message: /too general/
  },
  {
    name: 'plain http leads to this machine only, under a name below localhost too, and not under one that ends alike',
    steps: [...issuer, 'issuer'],
    bad: 'http://dex.notlocalhost:5556/dex',
    good: 'http://dex.localhost:5556/dex',
    message: /plain http/
  },
  {
    name: 'what hosts send tokens to is plain http on this very machine only',
    steps: ['publicUrl'],
    bad: 'http://gatehouse.localhost:8080',
    good: 'http://localhost:8080',
    message: /plain http/
  },
  {
    name: 'a key management service is asked by plain http on this very machine only',
    steps: ['vault', 'keys', 0],
    bad: { id: 'kms', awsKms: { keyId: 'alias/gatehouse', endpoint: 'http://kms.localhost:4566' } },
    good: { id: 'kms', awsKms: { keyId: 'alias/gatehouse', endpoint: 'http://127.0.0.1:4566' } },
    path: 'vault.keys[0].awsKms.endpoint',
    message: /plain http/
  },
  {
    name: 'more than a minute of leeway is refused',
    steps: [...auth, 'leewaySeconds'],
    bad: 61,
    good: 60,
    message: /from 0 to 60/
  },
  {
    name: 'the origin * is refused',
    steps: [...acme, 'origins', 0],
    bad: '*',
    good: 'https://claude.ai',
    message: /any web page/
  },
  {
    name: 'the origin null is refused',
    steps: [...acme, 'origins', 0],
    bad: 'null',
    good: 'http://localhost:6274',
    message: /sandboxed/
  },
  {
    name: 'an origin with a path is refused',
    steps: [...acme, 'origins', 0],
    bad: 'https://claude.ai/',
    good: 'https://claude.ai:8443',
    message: /must be an origin/
  }
])

t.test('auth none is accepted on every loopback address', async (t) => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) {
    t.same(problemsOf(withValue(auth, 'none', { ...base(), listen: { host } })), [], host)
  }
})

t.test('the address given on the command line is the one that counts', async (t) => {
  const open = withValue(auth, 'none')
  t.same(
    problemsOf(open, { host: '0.0.0.0' })
      .map(({ path }) => path)
      .toSorted(),
    ['publicUrl', 'tenants.acme.auth']
  )
  t.same(problemsOf({ ...open, listen: { host: '0.0.0.0' } }, { host: '127.0.0.1' }), [])
})
