// Attack: a tool, prompt or resource that the endpoint does not list is called by a guessed name or URI. What is
// listed can be called, and nothing else.

import t from 'tap'
import { acmeGateway, authOf, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('lists and calls agree, endpoint by endpoint', async (t) => {
  const [one, two, hidden] = await Promise.all(['one', 'two', 'hidden'].map((name) => startUpstream({ name })))
  t.teardown(() => Promise.all([one?.close(), two?.close(), hidden?.close()]))
  const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await acmeGateway(t, {
    auth: authOf(issuer),
    upstreams: {
      one: { type: 'http', url: one?.url },
      two: { type: 'http', url: two?.url },
      hidden: { type: 'http', url: hidden?.url }
    },
    endpoints: {
      default: { upstreams: ['one', 'two'] },
      small: { upstreams: ['two'], prefix: '' },
      other: { upstreams: ['hidden'] }
    }
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const list = async (from: typeof client, method: string, member: string, key: string) =>
    ((await from.request(method)).json.result[member] as Array<Record<string, string>>).map((entry) =>
      String(entry[key])
    )

  const tools = await list(client, 'tools/list', 'tools', 'name')
  t.ok(tools.length > 20 && tools.every((name) => /^(one|two)__/.test(name)))
  for (const name of tools.filter((name) => !/slow|crash|ask|big/.test(name)))
    t.notMatch((await client.request('tools/call', { name })).text, /Unknown tool/, name)
  for (const name of [
    'hidden__echo',
    'echo',
    'one__two__echo',
    'one__',
    '__echo',
    'one_echo',
    'ONE__echo',
    'one__ECHO',
    'one__echo ',
    'one__echo\0',
    ' one__echo',
    'one/echo',
    'one__nope',
    '../hidden__echo'
  ]) {
    const answer = await client.request('tools/call', { name })
    t.match(answer.json.error, { code: -32602, data: { reason: 'invalid_params' } }, JSON.stringify(name))
  }
  for (const uri of await list(client, 'resources/list', 'resources', 'uri'))
    t.equal((await client.request('resources/read', { uri })).json.result.contents[0].uri, uri)
  t.equal(
    (await client.request('resources/read', { uri: 'gatehouse://two/test://item/7' })).json.result.contents[0].text,
    'contents of test://item/7',
    'one of a template'
  )
  for (const uri of [
    'gatehouse://hidden/test://one',
    'gatehouse://nope/test://one',
    'gatehouse://one',
    'gatehouse://../hidden/test://one',
    'gatehouse://one@hidden/test://one',
    'GATEHOUSE://one/test://one',
    'test://one',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http://169.254.169.254/latest',
    'ui://hidden/app',
    '',
    ' ',
    'x'.repeat(100_000),
    'test://one\r\nX: y',
    `test://${'{+a*}'.repeat(1_000)}`,
    '../../etc/passwd',
    `file:///${'../'.repeat(20_000)}`
  ]) {
    const answer = await client.request('resources/read', { uri })
    t.match(
      answer.json.error,
      { code: -32002, data: { reason: 'resource_not_found' } },
      JSON.stringify(uri.slice(0, 40))
    )
    t.ok(answer.text.length < 1_000, 'and is not echoed whole')
  }
  t.equal(hidden?.seen.length, 0, 'the upstream of another endpoint never heard of it')

  const small = await legacyClient(acme.url('small'), keyOf.ada)
  t.ok((await small.request('tools/call', { name: 'echo' })).json.result)
  t.match((await small.request('tools/call', { name: 'two__echo' })).json.error, { code: -32602 })
})
