import t from 'tap'
import { createServer } from 'node:http'
import { discoverJwksUri } from '../../src/auth/provider-metadata.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { type Teardown, listen } from '../kit/listen.ts'

type Documents = Record<string, (origin: string) => unknown>

async function discovered(t: Teardown, documents: Documents, path = '', hosts?: readonly string[]) {
  const asked: string[] = []
  const origin: string = await listen(
    t,
    createServer((request, response) => {
      asked.push(request.url ?? '')
      const document = documents[request.url ?? '']
      if (document === undefined) return response.writeHead(404).end()
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document(origin)))
    })
  )
  const uri = await discoverJwksUri(
    { issuer: `${origin}${path}`, hosts },
    createFetch(),
    new AbortController().signal
  ).catch((error: unknown) => error)
  return { uri: typeof uri === 'string' ? uri.replace(origin, '') : uri, asked }
}

t.test('RFC 8414 comes first, with the well-known part before the path', async (t) => {
  const document = (origin: string) => ({ issuer: `${origin}/realms/a`, jwks_uri: `${origin}/keys` })
  t.same(
    await discovered(
      t,
      {
        '/.well-known/oauth-authorization-server/realms/a': document,
        '/realms/a/.well-known/openid-configuration': document
      },
      '/realms/a'
    ),
    { uri: '/keys', asked: ['/.well-known/oauth-authorization-server/realms/a'] }
  )
})

t.test('OpenID Connect Discovery comes second', async (t) => {
  t.same(
    await discovered(
      t,
      {
        '/realms/a/.well-known/openid-configuration': (origin) => ({
          issuer: `${origin}/realms/a`,
          jwks_uri: `${origin}/keys`
        })
      },
      '/realms/a'
    ),
    {
      uri: '/keys',
      asked: ['/.well-known/oauth-authorization-server/realms/a', '/realms/a/.well-known/openid-configuration']
    }
  )
})

t.test('the document must be of exactly the configured issuer', async (t) => {
  const place = '/.well-known/oauth-authorization-server'
  t.equal((await discovered(t, { [place]: (origin) => ({ issuer: origin, jwks_uri: `${origin}/keys` }) })).uri, '/keys')
  for (const issuer of [
    (origin: string) => `${origin}/`,
    (origin: string) => origin.toUpperCase(),
    () => 'https://idp.example.com',
    () => 7
  ]) {
    const { uri } = await discovered(t, {
      [place]: (origin) => ({ issuer: issuer(origin), jwks_uri: `${origin}/keys` })
    })
    t.ok(uri instanceof AggregateError, String(issuer('')))
  }
})

t.test('a document cannot send us to an address that only we can reach', async (t) => {
  const place = '/.well-known/oauth-authorization-server'
  for (const jwksUri of [
    'http://169.254.169.254/keys',
    'https://169.254.169.254/keys',
    'https://2130706434/keys',
    'https://[::1]/keys',
    'http://idp.example.com/keys',
    'file:///etc/passwd',
    '/keys',
    undefined
  ]) {
    const { uri } = await discovered(t, { [place]: (origin) => ({ issuer: origin, jwks_uri: jwksUri }) })
    t.ok(uri instanceof AggregateError, String(jwksUri))
  }
  const { uri } = await discovered(t, {
    [place]: (origin) => ({ issuer: origin, jwks_uri: 'https://keys.example.com/keys' })
  })
  t.equal(uri, 'https://keys.example.com/keys')
})

t.test('where hosts are listed, discovery leads to them and to the own origin of the issuer only', async (t) => {
  const place = '/.well-known/oauth-authorization-server'
  const at = (uri: (origin: string) => string) => ({
    [place]: (origin: string) => ({ issuer: origin, jwks_uri: uri(origin) })
  })
  const elsewhere = at(() => 'https://keys.internal.example/jwks')
  const { uri } = await discovered(t, elsewhere, '', ['127.0.0.1', '*.other.example'])
  t.match((uri as Error).message, /at a host that is not among admin.allowedHosts/)
  t.match(await discovered(t, elsewhere, '', ['*.internal.example']), { uri: 'https://keys.internal.example/jwks' })
  t.match(await discovered(t, elsewhere), { uri: 'https://keys.internal.example/jwks' }, 'where none are listed')
  t.match(
    await discovered(
      t,
      at((origin) => `${origin}/keys`),
      '',
      []
    ),
    { uri: '/keys' }
  )
})
