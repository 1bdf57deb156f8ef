// Requests beyond the rate of a caller are refused one by one, and told in the log a minute at a time, with how many.

import { pino } from 'pino'
import t from 'tap'
import { createRequestRates } from '../../src/http/rates/request-rates.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'
import { compileConfig } from '../../src/config/load.ts'

const acme = (perSecond: number) => {
  const limits = { requestsPerSecondPerPrincipal: perSecond }
  const config = { tenants: { acme: { auth: 'none', upstreams: {} } }, limits }
  return compileConfig(JSON.stringify(config), { path: 'g.json', env: {} }).limits
}

const callerNamed = (person: string) => {
  const principal = {
    tenant: tenantId('acme'),
    kind: 'key',
    issuer: 'gatehouse:key',
    subject: person,
    clientId: person
  }
  return { person, principal }
}

t.test(
  'requests beyond the rate are refused after a quarter of a second, one by one; too many such at once',
  async (t) => {
    const clock = handClock()
    const limits = acme(1)
    const rates = createRequestRates(() => limits, clock, { log: pino({ level: 'silent' }) })
    const ada = callerNamed('ada')
    for (let n = 0; n < 5; n++) t.equal(rates.letIn(ada), undefined, 'the control: it is let in at once')
    const refusals: unknown[] = []
    const refused = (): void => {
      rates.letIn(ada)?.catch((error: unknown) => refusals.push(error))
    }
    for (let n = 0; n < 1_024; n++) refused()
    t.throws(refused, { code: 'rate_limited' }, 'as many wait as may')
    clock.advance(249)
    await new Promise((resolve) => setImmediate(resolve))
    t.same(refusals, [])
    clock.advance(1)
    await until('the first one is refused', () => refusals.length > 0)
    t.equal(refusals.length, 1, 'alone')
    clock.advance(99)
    await until('others follow', () => refusals.length > 1)
    t.equal(refusals.length, 100, 'a millisecond apart')
    clock.advance(151)
    await until('all are refused', () => refusals.length === 1_024)
    t.match(refusals[0], { code: 'rate_limited', data: { limit: 'requestsPerSecondPerPrincipal' } })
    refused()
    t.equal(refusals.length, 1_024, 'there is room to wait again')
  }
)

t.test('a flood is one line at its beginning, one a minute while it lasts, and none after', (t) => {
  const clock = handClock()
  const lines: object[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as object) })
  const limits = acme(1)
  const rates = createRequestRates(() => limits, clock, { log })
  let refused = 0
  function ask(person: string): void {
    try {
      rates.count(callerNamed(person))
    } catch {
      refused++
    }
  }
  for (let n = 0; n < 5; n++) ask('ada')
  t.same([refused, lines], [0, []], 'what is within the rate is told nowhere')
  for (let n = 0; n < 30; n++) ask('ada')
  t.equal(refused, 30)
  t.match(lines, [{ level: 40, tenant: 'acme', client: 'ada', perSecond: 1 }])
  for (let n = 0; n < 6; n++) ask('bob')
  t.match(lines.slice(1), [{ client: 'bob' }], 'each caller has a line')
  clock.advance(60_000)
  t.match(lines.slice(2), [{ client: 'ada', requests: 29, withinMs: 60_000 }], 'bob was refused once, which was told')
  for (let n = 0; n < 10; n++) ask('ada')
  clock.advance(60_000)
  t.match(lines.slice(3), [{ client: 'ada', requests: 5 }])
  clock.advance(60_000)
  t.equal(lines.length, 4)
  for (let n = 0; n < 6; n++) ask('ada')
  t.match(lines.slice(4), [{ msg: /those beyond are refused/ }], 'and begins anew')
  t.end()
})
