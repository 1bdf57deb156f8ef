// Attack: Last-Event-ID with the id of a foreign stream, or an invented one. It proves nothing by itself and replays
// nothing.

import t from 'tap'
import { acmeGateway, authOf, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, readEvents } from '../kit/events.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { startUpstream } from '../kit/upstream.ts'

/** The ids of a streamed answer with three messages of progress, which say whose they are. */
async function idsOf(
  acme: AcmeGateway,
  url: string,
  token: string
): Promise<{ client: Awaited<ReturnType<typeof legacyClient>>; ids: string[] }> {
  const client = await legacyClient(url, token)
  const { text } = await client.request('tools/call', {
    name: url.includes('globex') || url === acme.url() ? 'progress' : 'up__progress',
    arguments: { steps: 3 },
    _meta: { progressToken: 'p' }
  })
  const ids = readEvents(text).flatMap(({ id }) => (id === undefined ? [] : [id]))
  if (ids.length !== 5) throw new Error(text)
  return { client, ids }
}

async function twoTenants(t: Parameters<typeof acmeGateway>[0]): Promise<AcmeGateway> {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const tenant = {
    upstreams: { up: { url: up.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, files: { upstreams: ['up'] } }
  }
  return await acmeGateway(t, { ...tenant, tenants: { globex: { ...tenant, auth: authOf(issuer) } } })
}

t.test('an id of another session, user, endpoint or tenant replays nothing', async (t) => {
  const acme = await twoTenants(t)
  const mine = await idsOf(acme, acme.url(), keyOf.ada)
  const foreign = {
    'another session of mine': await idsOf(acme, acme.url(), keyOf.ada),
    'another user': await idsOf(acme, acme.url(), keyOf.bob),
    'another endpoint': await idsOf(acme, acme.url('files'), keyOf.ada),
    'another tenant': await idsOf(acme, acme.url('default', 'globex'), keyOf.ada)
  }
  for (const [whose, { client, ids }] of Object.entries(foreign)) {
    for (const id of ids) {
      const stream = await listenEvents(acme.url(), mine.client, id)
      await stream.ended
      t.equal(stream.status, 400, whose)
      t.match(stream.text(), /"reason":"invalid_request"/)
      t.notMatch(stream.text(), /progress|step|done/)
    }
    const own = await listenEvents(
      whose === 'another tenant'
        ? acme.url('default', 'globex')
        : whose === 'another endpoint'
          ? acme.url('files')
          : acme.url(),
      client,
      ids[0]
    )
    await own.ended
    t.equal(own.messages().length, 4, 'while its owner gets it')
  }
})

t.test('a foreign session with a foreign event id and my own token replays nothing', async (t) => {
  const acme = await twoTenants(t)
  const theirs = await idsOf(acme, acme.url(), keyOf.bob)
  const stolen = { headers: { ...theirs.client.headers, authorization: `Bearer ${keyOf.ada}` } }
  t.equal((await listenEvents(acme.url(), stolen, theirs.ids[0])).status, 404, 'the session is not mine')
  t.equal(
    (
      await listenEvents(
        acme.url(),
        { headers: { ...theirs.client.headers, authorization: 'Bearer wrong' } },
        theirs.ids[0]
      )
    ).status,
    401
  )
  t.equal((await listenEvents(acme.url(), theirs.client, theirs.ids[0])).status, 200)
})

t.test('event ids that were never given out replay nothing', async (t) => {
  const acme = await twoTenants(t)
  const { client, ids } = await idsOf(acme, acme.url(), keyOf.ada)
  const other = await client.request('tools/call', {
    name: 'progress',
    arguments: { steps: 1 },
    _meta: { progressToken: 'p' }
  })
  const [stream = '', , proof = ''] = (ids[1] ?? '').split('.')
  const [otherStream = '', , otherProof = ''] = (readEvents(other.text)[1]?.id ?? '').split('.')
  const invented = [
    `${stream}.99.${proof}`,
    `${stream}.2.${proof}`,
    `${stream}.-1.${proof}`,
    `${stream}.1.`,
    `${stream}.1.${'A'.repeat(16)}`,
    `${stream}.1.${otherProof}`,
    `${otherStream}.1.${proof}.x`,
    `${stream}.1.${proof}x`,
    `${stream}.1.${proof}=`,
    `${stream}.01.${proof}`,
    `${stream}.1e0.${proof}`,
    `${stream}. 1.${proof}`,
    `s${stream.slice(1)}.1.${proof}`,
    '1',
    '0',
    '*',
    '-1',
    '../other',
    '__proto__',
    `${ids[1] ?? ''}${'x'.repeat(10_000)}`,
    'x'.repeat(10_000),
    '.'.repeat(10_000),
    `${stream}.${'9'.repeat(10_000)}.${proof}`
  ]
  for (const id of invented) {
    const answer = await listenEvents(acme.url(), client, id)
    await answer.ended
    t.equal(answer.status, 400, id.slice(0, 60))
    t.same(readEvents(answer.text()), [])
  }
  const own = await listenEvents(acme.url(), client, ids[1])
  await own.ended
  t.equal(own.messages().length, 3)
  t.equal((await client.request('ping')).status, 200)
})

t.test('after the end of a session its event ids replay nothing', async (t) => {
  const acme = await twoTenants(t)
  const { client, ids } = await idsOf(acme, acme.url(), keyOf.ada)
  await client.end()
  t.equal((await listenEvents(acme.url(), client, ids[0])).status, 404)
  const again = await legacyClient(acme.url(), keyOf.ada)
  t.equal((await listenEvents(acme.url(), again, ids[0])).status, 400)
})
