// A client that takes a little of its answer now and then makes progress for ever, and the answer waits in memory.

import t, { type Test } from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, send } from '../../kit/client.ts'
import { heldSocketTimeouts } from '../../kit/faster-sockets.ts'
import { fallBehind, heldSignals, slowReader, type SlowReader } from '../../kit/slow-reader.ts'
import { until } from '../../kit/until.ts'

const bytes = 14_000_000
const big = { name: 'big', arguments: { bytes } }
const rpc = (method: string, params: unknown, id?: string): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params })

/** What runs out is the time that a slow reader is given, and no other: it never stalls. */
async function set(t: Test) {
  heldSocketTimeouts(t, 15_000)
  const signals = heldSignals(t)
  const acme = await acmeGateway(t)
  const givesUp = (): number => acme.log.filter(({ msg }) => msg === 'a client did not read its stream; closed').length
  return {
    acme,
    signals,
    givesUp,
    /** What waits is given a time that fits it, and is read on in that. */
    async trickles(reader: SlowReader, readers: number): Promise<void> {
      const fits = (ms: number): boolean => ms > 60_000 && ms < 300_000
      await until('it is given a time', () => signals.asked.filter(fits).length === readers)
      for (let n = 0; n < 3; n++) await reader.take(100_000)
      t.equal(givesUp(), 0)
    }
  }
}

/** It takes all that is still there. */
async function isCut(t: Test, reader: SlowReader, all = bytes): Promise<void> {
  reader.takeAll()
  await until('it is closed, or has got all', () => reader.closed || reader.text().length >= all)
  t.ok(reader.text().length < all, `it had taken ${reader.text().length} bytes`)
}

t.test('one that reads too slowly is closed in the end, one that reads gets everything', async (t) => {
  const { acme, signals, trickles } = await set(t)
  const ada = await legacyClient(acme.url(), keyOf.ada)
  const { headers } = ada
  const call = { method: 'POST', headers, body: rpc('tools/call', big, 'big') }
  const slow = slowReader(t, acme.port, '/t/acme/mcp', call)
  await trickles(slow, 1)
  signals.runOut()
  await isCut(t, slow)
  const { json } = await ada.request('tools/call', big)
  t.equal(json.result.content[0].text.length, bytes)
})

t.test('the stream of a session is closed where it is read too slowly, and goes on where it is read', async (t) => {
  const { acme, signals, givesUp } = await set(t)
  const readerOf = async (key: string): Promise<SlowReader> => {
    const { request, headers } = await legacyClient(acme.url(), key)
    await request('tools/call', { name: 'echo' })
    const get = { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } }
    const reader = slowReader(t, acme.port, '/t/acme/mcp', get)
    await reader.takeUntil('retry:')
    return reader
  }
  const [slow, eager] = [await readerOf(keyOf.ada), await readerOf(keyOf.bob)]
  await until('the upstream can be heard', () => acme.upstream.allListening())
  const say = async (data: string): Promise<unknown> => {
    acme.upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data } })
    return await eager.takeUntil(data.slice(-20))
  }
  eager.takeAll()
  // Less than a mebibyte waits in the end: beyond that the stream is given up for another reason.
  const text = 'x'.repeat(256 * 1024)
  let sent = 0
  await fallBehind(slow, signals, () => say(`${text} ${++sent} of the first`))
  t.equal(givesUp(), 0)
  await say('the one after them')
  signals.runOut()
  await isCut(t, slow, sent * text.length)
  t.equal(givesUp(), 1)
  await say('the last one of all')
})

t.test('the stream of HTTP+SSE is closed where it is read too slowly, and goes on where it is read', async (t) => {
  const { acme, signals, givesUp, trickles } = await set(t)
  const openStream = async (key: string) => {
    const authorization = `Bearer ${key}`
    const get = { method: 'GET', headers: { authorization, accept: 'text/event-stream' } }
    const reader = slowReader(t, acme.port, '/t/acme/sse', get)
    await reader.takeUntil('\n\n')
    const path = /data: (\S+)\n/.exec(reader.text())?.[1] ?? ''
    const post = (body: string): Promise<{ status: number }> =>
      send(acme.publicUrl + path, { headers: { authorization, 'content-type': 'application/json' }, body })
    const clientInfo = { name: 'slow', version: '1' }
    await post(rpc('initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo }, 'init'))
    await reader.takeUntil('"id":"init"')
    await post(rpc('notifications/initialized', {}))
    return {
      reader,
      post,
      call: (id: string, params: unknown = { name: 'echo' }) => post(rpc('tools/call', params, id))
    }
  }
  const [slow, eager] = [await openStream(keyOf.ada), await openStream(keyOf.bob)]
  for (const { call } of [slow, eager]) t.equal((await call('big', big)).status, 202)
  await trickles(slow.reader, 2)
  eager.reader.takeAll()
  await eager.call('second')
  await eager.reader.takeUntil('"id":"second"')
  signals.runOut()
  await isCut(t, slow.reader)
  t.equal(givesUp(), 1)
  t.equal((await slow.call('late')).status, 404, 'its session is over')
  await eager.call('third')
  await eager.reader.takeUntil('"id":"third"')
})
