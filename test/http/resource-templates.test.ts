// Resources that no list shows, on an endpoint of several upstreams, where lists wrap the URIs: a model copies a bare
// URI out of a text.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('a bare URI that matches a template of one upstream is read there, of two it is read nowhere', async (t) => {
  const templates = (...uris: string[]) => uris.map((uriTemplate) => ({ uriTemplate, name: uriTemplate }))
  const one = await startUpstream({ templates: templates('notes://{id}', 'both://{id}'), resources: [] })
  const two = await startUpstream({ templates: templates('mail://{box}/{id}', 'both://{id}'), resources: [] })
  for (const each of [one, two]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { one: { type: 'http', url: one.url }, two: { type: 'http', url: two.url } },
    endpoints: { default: { upstreams: ['one', 'two'] } }
  })
  const session = await legacyClient(acme.url(), key)
  const readers = {
    '2026-07-28': async (uri: string) =>
      (await modernRequest(acme.url(), 'resources/read', { uri }, { token: key })).json,
    '2025-11-25': async (uri: string) => (await session.request('resources/read', { uri })).json
  }
  for (const [revision, read] of Object.entries(readers)) {
    const wrapped = 'gatehouse://two/mail://in/7'
    t.match(
      await read(wrapped),
      { result: { contents: [{ uri: wrapped, text: 'contents of mail://in/7' }] } },
      revision
    )
    t.match(await read('mail://in/7'), { result: { contents: [{ uri: wrapped, text: 'contents of mail://in/7' }] } })
    t.match(await read('notes://1'), { result: { contents: [{ text: 'contents of notes://1' }] } })
    for (const uri of ['both://1', 'mail://in', 'other://1']) t.match(await read(uri), { error: {} }, uri)
  }
  const named = acme.log.flatMap((line) => (line['method'] === 'resources/read' ? line['resource'] : []))
  const perClient = ['mail://{box}/{id}', 'mail://{box}/{id}', 'notes://{id}', undefined, undefined, undefined]
  t.same(named, [...perClient, ...perClient], 'lines of the log have templates')
  t.notMatch(JSON.stringify(acme.log), 'mail://in')
  const readAt = ({ seen }: typeof one) =>
    seen.flatMap(({ message }) =>
      message?.['method'] === 'resources/read' ? (message['params'] as { uri: string }).uri : []
    )
  t.same(readAt(one), ['notes://1', 'notes://1'])
  t.same(readAt(two), Array(4).fill('mail://in/7'))
})

t.test('a bare URI is compared with the first hundred templates of a server', async (t) => {
  const numbered = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ uriTemplate: `many://${n}/{id}`, name: `template ${n}` }))
  const [many, other] = [await startUpstream({ templates: numbered(150), resources: [] }), await startUpstream({})]
  for (const each of [many, other]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { many: { type: 'http', url: many.url }, other: { type: 'http', url: other.url } }
  })
  const session = await legacyClient(acme.url(), key)
  const read = async (uri: string) => (await session.request('resources/read', { uri })).json
  t.match(await read('many://99/x'), { result: { contents: [{ text: 'contents of many://99/x' }] } })
  t.match(await read('many://100/x'), { error: { data: { reason: 'resource_not_found' } } })
  t.match(await read('gatehouse://many/many://100/x'), { result: {} }, 'in the form of the lists it is found')
})
