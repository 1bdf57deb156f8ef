// Last-Event-ID is what a client says, so it proves nothing by itself: an id of somebody else, or an invented one, replays nothing.

import t from 'tap'
import { acme, authOf, keyOf } from '../kit/acme.ts'
import type { Acme } from '../kit/acme.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, readEvents } from '../kit/events.ts'
import { forge } from '../kit/forge.ts'
import { startUpstream } from '../kit/upstream.ts'

/** The ids of a streamed answer with three messages of progress, which say whose they are. */
async function idsOf (house: Acme, url: string, token: string): Promise<{ client: Awaited<ReturnType<typeof legacyClient>>, ids: string[] }> {
  const client = await legacyClient(url, token)
  const { text } = await client.request('tools/call', { name: url.includes('globex') || url === house.url() ? 'progress' : 'up__progress', arguments: { steps: 3 }, _meta: { progressToken: 'p' } })
  const ids = readEvents(text).flatMap(({ id }) => id === undefined ? [] : [id])
  if (ids.length !== 5) throw new Error(text)
  return { client, ids }
}

async function twoTenants (t: Parameters<typeof acme>[0]): Promise<Acme> {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const issuer = await forge(t, { resource: 'urn:none', now: Date.now() })
  const tenant = { upstreams: { up: { url: up.url } }, endpoints: { default: { upstreams: ['up'], prefix: '' }, files: { upstreams: ['up'] } } }
  return await acme(t, { ...tenant, tenants: { globex: { ...tenant, auth: authOf(issuer) } } })
}

t.test('an id of another session, user, endpoint or tenant replays nothing', async (t) => {
  const house = await twoTenants(t)
  const mine = await idsOf(house, house.url(), keyOf.ada)
  const foreign = {
    'another session of mine': await idsOf(house, house.url(), keyOf.ada),
    'another user': await idsOf(house, house.url(), keyOf.bob),
    'another endpoint': await idsOf(house, house.url('files'), keyOf.ada),
    'another tenant': await idsOf(house, house.url('default', 'globex'), keyOf.ada)
  }
  for (const [whose, { client, ids }] of Object.entries(foreign)) {
    for (const id of ids) {
      const stream = await listenEvents(house.url(), mine.client, id)
      await stream.ended
      t.equal(stream.status, 400, whose)
      t.match(stream.text(), /"reason":"invalid_request"/)
      t.notMatch(stream.text(), /progress|step|done/)
    }
    const own = await listenEvents(whose === 'another tenant' ? house.url('default', 'globex') : whose === 'another endpoint' ? house.url('files') : house.url(), client, ids[0])
    await own.ended
    t.equal(own.messages().length, 4, 'while its owner gets it')
  }
})

t.test('the session and the id of somebody else, with a token of my own', async (t) => {
  const house = await twoTenants(t)
  const theirs = await idsOf(house, house.url(), keyOf.bob)
  const stolen = { headers: { ...theirs.client.headers, authorization: `Bearer ${keyOf.ada}` } }
  t.equal((await listenEvents(house.url(), stolen, theirs.ids[0])).status, 404, 'the session is not mine')
  t.equal((await listenEvents(house.url(), { headers: { ...theirs.client.headers, authorization: 'Bearer wrong' } }, theirs.ids[0])).status, 401)
  t.equal((await listenEvents(house.url(), theirs.client, theirs.ids[0])).status, 200)
})

t.test('ids that were never given out', async (t) => {
  const house = await twoTenants(t)
  const { client, ids } = await idsOf(house, house.url(), keyOf.ada)
  const other = await client.request('tools/call', { name: 'progress', arguments: { steps: 1 }, _meta: { progressToken: 'p' } })
  const [stream = '', , proof = ''] = (ids[1] ?? '').split('.')
  const [otherStream = '', , otherProof = ''] = (readEvents(other.text)[1]?.id ?? '').split('.')
  const invented = [
    `${stream}.99.${proof}`, `${stream}.2.${proof}`, `${stream}.-1.${proof}`, `${stream}.1.`, `${stream}.1.${'A'.repeat(16)}`, `${stream}.1.${otherProof}`, `${otherStream}.1.${proof}.x`,
    `${stream}.1.${proof}x`, `${stream}.1.${proof}=`, `${stream}.01.${proof}`, `${stream}.1e0.${proof}`, `${stream}. 1.${proof}`, `s${stream.slice(1)}.1.${proof}`,
    '1', '0', '*', '-1', '../other', '__proto__', `${ids[1] ?? ''}${'x'.repeat(10_000)}`, 'x'.repeat(10_000), '.'.repeat(10_000), `${stream}.${'9'.repeat(10_000)}.${proof}`
  ]
  for (const id of invented) {
    const answer = await listenEvents(house.url(), client, id)
    await answer.ended
    t.equal(answer.status, 400, id.slice(0, 60))
    t.same(readEvents(answer.text()), [])
  }
  const own = await listenEvents(house.url(), client, ids[1])
  await own.ended
  t.equal(own.messages().length, 3)
  t.equal((await client.request('ping')).status, 200)
})

t.test('the session is over: so are its streams', async (t) => {
  const house = await twoTenants(t)
  const { client, ids } = await idsOf(house, house.url(), keyOf.ada)
  await client.end()
  t.equal((await listenEvents(house.url(), client, ids[0])).status, 404)
  const again = await legacyClient(house.url(), keyOf.ada)
  t.equal((await listenEvents(house.url(), again, ids[0])).status, 400)
})
