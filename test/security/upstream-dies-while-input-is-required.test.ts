// Fault: a server dies while a call at it waits for the client's input. A legacy one has lost the call: the retry gets
// a clear error, and the call is never sent twice. A modern one is sent the call again, and may not be there.

import t from 'tap'
import { acmeGateway, authOf, keyOf } from '../kit/acme-gateway.ts'
import { capableClient, callUntilServerRequest, post, scriptedStdio } from '../kit/server-request.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import { accepted, answers, round } from '../kit/rounds.ts'
import { until } from '../kit/until.ts'

const elicit = { name: 'elicit', arguments: {} }
const lost = {
  status: 200,
  json: {
    error: {
      code: -32602,
      message: /ended while it waited for input.*unknown/,
      data: { reason: 'invalid_state', outcome: 'unknown' }
    }
  }
}

t.test('a parked call is lost when its server over Streamable HTTP breaks the connection', async (t) => {
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  const whole = await round(ada, elicit)
  t.match(
    (await round(ada, elicit, answers(whole, accepted({ name: 'Ada' })))).answer.json,
    { result: { resultType: 'complete' } },
    'where it stays, the call is finished'
  )

  const parked = await round(ada, elicit)
  acme.upstream.cut()
  await until('the gateway knows', () =>
    acme.log.some(({ outcome, msg }) => outcome === 'upstream_lost' || /upstream/.test(String(msg)))
  )
  const back = answers(parked, accepted())
  t.match((await round(ada, elicit, back)).answer, lost)
  t.equal(acme.upstream.server.calls('elicit'), 2, 'nothing was sent again')
  t.match(
    (await round(ada, elicit, back)).answer.json,
    { error: { data: { reason: 'invalid_state', outcome: 'unknown' } } },
    'and again'
  )

  const next = await round(ada, elicit)
  t.match(
    (await round(ada, elicit, answers(next, accepted()))).answer.json,
    { result: { resultType: 'complete' } },
    'a new call is served'
  )
})

t.test('a parked call is lost when its server over stdio is killed', async (t) => {
  const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await gateway(t, {
    upstreams: { up: { ...scriptedStdio, era: 'legacy' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: authOf(issuer)
  })
  const ada = { url: acme.url(), token: keyOf.ada }
  const pid = async (): Promise<number> =>
    Number((await round(ada, { name: 'pid' })).answer.json.result.content[0].text)
  const first = await pid()
  // Calls that follow each other have the same process.
  const parked = await round(ada, elicit)
  process.kill(first, 'SIGKILL')
  await until('the gateway knows', () => acme.log.some(({ msg }) => msg === 'a connection to the upstream ended'))
  t.match((await round(ada, elicit, answers(parked, accepted()))).answer, lost)
  t.not(await pid(), first, 'the next call has a process of its own')
  const next = await round(ada, elicit)
  t.match((await round(ada, elicit, answers(next, accepted()))).answer.json, { result: { resultType: 'complete' } })
})

t.test('a modern server over Streamable HTTP that is gone at the retry is an error for the client', async (t) => {
  const modern = await startModern()
  const { url } = await gateway(t, {
    upstreams: { up: { type: 'http', url: modern.url, era: 'modern' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await capableClient(url(), key)
  const asked = await callUntilServerRequest(url(), client, 'ask')
  await modern.close()
  await post(url(), client, { id: asked.serverRequest['id'], result: { action: 'accept', content: {} } })
  const final = (await asked.stream.next('the end', ({ id }) => id === 'the call')) as { error?: unknown }
  t.match(final, { error: { code: -32603, data: { reason: /^upstream_/, upstream: 'up' } } })
  t.equal((await client.request('ping')).status, 200, 'the session goes on')
})

t.test('a modern server over stdio is started again for the retry, since it keeps no state', async (t) => {
  const { url } = await gateway(t, {
    upstreams: { up: { ...modernStdio(), era: 'modern' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await capableClient(url(), key)
  const pid = async (): Promise<number> =>
    Number((await client.request('tools/call', { name: 'pid' })).json.result.content[0].text)
  const first = await pid()
  const asked = await callUntilServerRequest(url(), client, 'ask')
  process.kill(first, 'SIGKILL')
  await until(
    'it has another process',
    async () =>
      (await client.request('tools/call', { name: 'pid' })).json.result !== undefined && (await pid()) !== first
  )
  await post(url(), client, { id: asked.serverRequest['id'], result: { action: 'accept', content: { name: 'Ada' } } })
  t.match(await asked.result(), { inputResponses: { user_name: { action: 'accept', content: { name: 'Ada' } } } })
})

t.test('a modern server whose connection was closed as idle meanwhile is connected to again', async (t) => {
  const { url } = await gateway(t, {
    upstreams: { up: { ...modernStdio(), era: 'modern', idleMs: 100 } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await capableClient(url(), key)
  const pid = Number((await client.request('tools/call', { name: 'pid' })).json.result.content[0].text)
  const asked = await callUntilServerRequest(url(), client, 'ask')
  await until('its process is gone', () => !alive(pid))
  await post(url(), client, { id: asked.serverRequest['id'], result: { action: 'accept', content: { name: 'Ada' } } })
  t.match(await asked.result(), { inputResponses: { user_name: { action: 'accept', content: { name: 'Ada' } } } })
})

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // Nobody's loss: it is what is asked.
  }
}
