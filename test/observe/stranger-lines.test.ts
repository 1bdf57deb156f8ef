// A flood of requests of whoever is not let in does not fill the log: it has so many lines and no more, and a warning
// says how many there were. Who is let in has a line for each request all the same.

import t from 'tap'
import { createLineLog } from '../../src/observe/log.ts'
import { createStrangerLines } from '../../src/observe/lines/stranger-lines.ts'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { handClock } from '../kit/connector.ts'
import { stopSteadyClock } from '../kit/held-time.ts'
import { until } from '../kit/until.ts'

t.test('one address gets half of the lines, and a warning says how many were left out', async (t) => {
  const clock = handClock()
  const lines: Array<Readonly<Record<string, unknown>>> = []
  const strangers = createStrangerLines(
    clock,
    createLineLog('info', (line) => void lines.push(line))
  )
  const levels = (address: string, count: number) =>
    Array.from({ length: count }, () => strangers.levelOf('info', address))
  t.same(new Set(levels('192.0.2.1', 500)), new Set(['info']))
  t.equal(lines.length, 0, 'nothing was left out')
  t.same(levels('192.0.2.1', 3), ['debug', 'debug', 'debug'])
  t.same(levels('192.0.2.2', 1), ['info'], 'another address')
  t.equal(strangers.levelOf('error', '192.0.2.1'), 'debug', 'also what is unavailable to it')
  t.equal(strangers.levelOf('error', '192.0.2.2'), 'error', 'the control')
  t.match(lines, [{ level: 40, msg: /^too many requests of strangers/ }])
  clock.advance(60_000)
  t.match(lines.slice(1), [{ level: 40, requests: 3, withinMs: 60_000 }])
  t.same(levels('192.0.2.1', 1), ['info'], 'the flood is over')
  clock.advance(60_000)
  t.equal(lines.length, 2)
})

t.test('preflights and refusals of a flood are left out, calls are not', async (t) => {
  // A second of time is fifty more lines, and a busy machine sends no more than that.
  stopSteadyClock(t)
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const before = acme.log.length
  const linesOf = (msg: string) =>
    acme.log.slice(before).filter((line) => line['msg'] === msg && line['level'] === 30).length
  const preflight = () => send(acme.url(), { method: 'OPTIONS' })
  let sent = 0
  await until('a warning', async () => {
    sent += (await Promise.all(Array.from({ length: 100 }, preflight))).length
    return acme.log.some(({ msg }) => String(msg).startsWith('too many requests of strangers'))
  })
  const shown = linesOf('request')
  t.equal(shown, 500)
  t.ok(shown < sent, `${shown} lines of ${sent}`)
  t.equal((await send(acme.url(), { headers: jsonHeaders, body: '{' })).status, 401)
  for (let call = 0; call < 60; call++) await client.request('ping')
  t.equal(linesOf('call'), 60, 'whoever is let in has all of theirs')
})

t.test('what cannot be told to strangers, as their issuer is away, is left out of a flood as well', async (t) => {
  stopSteadyClock(t)
  const acme = await acmeGateway(t)
  acme.issuer.behaviour = 'down'
  const token = await acme.bearer('JWT')
  const headers = { ...jsonHeaders, authorization: `Bearer ${token}` }
  const ask = async () => (await send(acme.url(), { headers, body: '{' })).status
  let sent = 0
  await until('a warning', async () => {
    const statuses = await Promise.all(Array.from({ length: 100 }, ask))
    t.same(new Set(statuses), new Set([503]))
    sent += statuses.length
    return acme.log.some(({ msg }) => String(msg).startsWith('too many requests of strangers'))
  })
  const errors = acme.log.filter(({ msg, level }) => msg === 'refused' && level === 50).length
  t.equal(errors, 500)
  t.ok(errors < sent, `${errors} lines of ${sent}`)
})
