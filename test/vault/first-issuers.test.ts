// The secret of a client whose authorization server nobody has named goes to the first one that the upstream names, and
// to no other one, whatever the upstream says later.

import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer, robot } from '../kit/authorization-server.ts'
import { legacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { gateway, type TestGateway } from '../kit/gateway.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }
const top = {
  vault: { keys: [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }] },
  egress: { allow: ['127.0.0.0/8'] }
}

/** An upstream of one authorization server, and another server that it may name; each gateway has the store before. */
async function setup(t: Test, own: object) {
  const [first, other] = [await authorizationServer(t), await authorizationServer(t)]
  const upstream = await protectedUpstream(t, first)
  const store = `file:${t.testdir()}/gatehouse.db`
  const start = (more: object = {}): Promise<TestGateway> =>
    gateway(t, {
      upstreams: { up: { type: 'http', url: upstream.url, auth: { ...own, ...more } } },
      auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
      store,
      top
    })
  const name = (...servers: ReadonlyArray<{ readonly url: string }>): void => {
    upstream.metadata = { resource: upstream.url, authorization_servers: servers.map(({ url }) => url) }
  }
  return { first, other, upstream, start, name }
}

async function call(made: TestGateway) {
  const { json } = await (await legacyClient(made.url(), keyOf.ada)).request('tools/call', echo)
  return json as { result?: unknown; error?: { message: string } }
}

const errorsOf = (made: TestGateway): string =>
  made.log.flatMap(({ level, msg }) => (level === 50 ? [String(msg)] : [])).join(' ')

t.test('a secret is not shown to another authorization server after a restart', async (t) => {
  const secret = { type: 'clientCredentials', clientId: 'robot', clientSecret: robot.client_secret }
  const { first, other, start, name } = await setup(t, secret)
  const before = await start()
  t.ok((await call(before)).result)
  await before.close()

  name(other)
  const after = await start()
  t.ok((await call(after)).error)
  t.equal(other.tokenRequests.length, 0)
  const said = errorsOf(after)
  for (const { url } of [first, other]) t.match(said, `issuer: ${url}`, 'what to write is said')
  await after.close()

  name(other, first)
  const both = await start()
  t.ok((await call(both)).result, 'the server of before is among those that it names')
  t.equal(other.tokenRequests.length, 0)
  await both.close()

  name(other)
  const another = await start({ clientId: 'another-robot' })
  await call(another)
  const asked = other.tokenRequests.length
  t.ok(asked > 0, 'another client has another secret, and goes to the server of now')
  await another.close()
  await call(await start({ issuer: other.url }))
  t.ok(other.tokenRequests.length > asked, 'and whoever names a server means it')
})

t.test('nobody is sent to another one to connect an account with the client of the configuration', async (t) => {
  const client = { type: 'user', clientId: 'robot', clientSecret: robot.client_secret }
  const { first, other, start, name } = await setup(t, client)
  const made = await start()
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
  t.match((await submit(tab, page, 'connect')).html, first.url)
  name(other)
  const refused = (await submit(tab, page, 'connect')).html
  t.match(refused, 'Nothing was connected')
  for (const { url } of [first, other]) t.match(refused, url)
  t.notMatch(refused, '<a class="primary"', 'and there is no link to it')
  await made.close()
  const named = await start({ issuer: other.url })
  const again = await signedIn(`${named.publicUrl}/t/acme/connections`, keyOf.ada)
  t.match((await submit(again.tab, again.page, 'connect')).html, other.url, 'whoever names a server means it')
})

t.test('a tenant that was removed and made again begins anew', async (t) => {
  const secret = { type: 'clientCredentials', clientId: 'robot', clientSecret: robot.client_secret }
  const { other, start, name } = await setup(t, secret)
  const before = await start()
  t.ok((await call(before)).result)
  const acme = { auth: { keys: [{ name: 'ada', key: keyOf.ada }] }, upstreams: {} }
  const rest = { listen: { host: '127.0.0.1', port: 0 }, ...top }
  t.ok(before.reload({ ...rest, tenants: { other: acme } }))
  await before.close()
  name(other)
  await call(await start())
  t.ok(other.tokenRequests.length > 0)
})
