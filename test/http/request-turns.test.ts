// Requests that wait for their turn: those that waited too long are refused, in their turn; whatever comes to an event
// loop that is late for good has waited already.

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { createRequestTurns } from '../../src/http/request-turns.ts'
import { createTurnShares } from '../../src/time/turn-shares.ts'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { type GatewayError, tenantId } from '../../src/protocol/messages.ts'
import { handClock } from '../kit/connector.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Each request takes 0.3 ms of the clock that turns are measured by. */
function turnsFor({ standing = 0 } = {}) {
  const spent = { ms: 0 }
  const shares = createTurnShares(() => spent.ms)
  const letIn = { tenant: 'acme', caller: 'ada' }
  const clock = handClock()
  const lines: object[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as object) })
  const delay = { standingMs: () => standing, close() {} }
  const state = {
    snapshot: {
      limits: { queueMs: 100 },
      tenants: new Set(['acme', 'globex'].map(tenantId)),
      trustedProxies: (address: string) => address === '10.0.0.1'
    }
  }
  const connections = { ownerOf: () => ({ ...letIn }) }
  const memory = createMemoryAccount()
  const turns = createRequestTurns({ connections, memory, state, delay, clock, log, shares })
  const done: string[] = []
  const add = (name: string, isProbe = false, url = '/t/acme/mcp', from?: string): boolean =>
    turns.add({
      socket: Object.assign(new EventEmitter(), { remoteAddress: '10.0.0.1' }) as unknown as Socket,
      headers: from === undefined ? {} : { 'x-forwarded-for': from },
      url,
      bytes: 10,
      begin() {
        done.push(name)
        spent.ms += 0.3
      },
      refuse: ({ code }: GatewayError) => done.push(`${name} ${code}`),
      isProbe
    })
  return { clock, lines, done, add, shares, letIn, spent }
}

t.test('what waited longer than limits.queueMs is refused, and a probe is not', async (t) => {
  const { clock, lines, done, add } = turnsFor()
  for (let n = 0; n < 20; n++) add('first')
  t.ok(add('second'), 'it waits')
  add('probe', true)
  t.equal(done.length, 20)
  clock.advance(101)
  await turn()
  await turn()
  t.same(done.slice(20), ['second overloaded', 'probe'])
  add('third')
  t.equal(done.at(-1), 'third', 'the control')
  t.match(lines, [{ level: 40, queueMs: 100 }])
})

t.test('a probe does not wait for those who have had their share of a turn', (t) => {
  const { done, add, shares } = turnsFor()
  shares.note('acme')
  shares.note('other')
  for (const name of ['first', 'second', 'third']) add(name)
  t.same(done, ['first', 'second'], 'the third one waits')
  add('probe', true)
  t.equal(done.at(-1), 'probe')
  t.end()
})

t.test('at an event loop that is later than limits.queueMs all but probes are refused at once', (t) => {
  const { done, add } = turnsFor({ standing: 150 })
  t.notOk(add('first'))
  add('probe', true)
  t.same(done, ['first overloaded', 'probe'])
  t.end()
})

t.test('while requests are refused the log has a line each ten seconds, with how many', async (t) => {
  const { clock, lines, add } = turnsFor({ standing: 150 })
  for (let n = 0; n < 30; n++) add('late')
  t.equal(lines.length, 1)
  clock.advance(10_000)
  t.match(lines[1], { requests: 29, withinMs: 10_000 })
  clock.advance(10_000)
  add('late')
  t.equal(lines.length, 3, 'and begins anew after a pause')
})

t.test('strangers have one share, whichever tenants they name, and those at each of them take turns', async (t) => {
  const { done, add, shares, letIn } = turnsFor()
  letIn.tenant = ''
  shares.note('acme')
  shares.note('globex')
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) add(name)
  add('b1', false, '/t/globex/mcp')
  add('c1', false, '/t/unknown/mcp')
  t.same(done, ['a1', 'a2'])
  await turn()
  t.same(done.slice(2), ['a3', 'b1'])
  await turn()
  t.same(done.slice(4), ['c1', 'a4'], 'whatever is no tenant is one')
  t.ok(['acme', 'globex'].every(shares.has), 'no tenant pays for them')
})

t.test('strangers at one tenant take turns by the networks that they come from', async (t) => {
  const { done, add, shares, letIn } = turnsFor()
  letIn.tenant = ''
  shares.note('acme')
  shares.note('globex')
  const at = (name: string, from: string): boolean => add(name, false, '/t/acme/mcp', from)
  for (const n of [1, 2, 3, 4, 5, 6]) at(`a${n}`, `2001:db8:0:1::${n}`)
  at('b1', '2001:db8:0:2::1')
  at('c1', '203.0.113.7')
  t.same(done, ['a1', 'a2'])
  await turn()
  t.same(done.slice(2), ['a3', 'b1'])
  await turn()
  t.same(done.slice(4), ['c1', 'a4'])
})

t.test('however many networks strangers at one tenant come from, those at another wait for none of them', async (t) => {
  const { done, add, shares, letIn } = turnsFor()
  letIn.tenant = ''
  shares.note('acme')
  shares.note('globex')
  for (let n = 0; n < 2_000; n++) add(`a${n}`, false, '/t/acme/mcp', `2001:db8:0:${n.toString(16)}::1`)
  add('b1', false, '/t/globex/mcp', '203.0.113.7')
  await turn()
  t.same(done.slice(2), ['a2', 'b1'])
})

t.test('on a connection of a tenant, a request that names another one is that of a stranger', (t) => {
  const { add, shares } = turnsFor()
  shares.note('acme')
  shares.note('globex')
  for (const name of ['first', 'second']) add(name, false, '/t/globex/mcp')
  t.same(['', 'acme', 'globex'].map(shares.has), [false, true, true])
  for (const name of ['third', 'fourth']) add(name)
  t.same(['', 'acme', 'globex'].map(shares.has), [false, false, true], 'the control')
  t.end()
})

t.test('at paths without a tenant, or of one that there is not, whoever was let in before is a stranger', (t) => {
  const isPaidBy = (url: string): string[] => {
    const { add, shares } = turnsFor()
    shares.note('acme')
    shares.note('globex')
    for (const name of ['first', 'second']) add(name, false, url)
    return ['', 'acme', 'globex'].filter((tenant) => !shares.has(tenant))
  }
  for (const url of [
    '/',
    '/login/acme/callback',
    '/.well-known/x/t/acme/mcp',
    '/x?/t/acme/mcp',
    '/t/',
    '/t/unknown/mcp'
  ])
    t.same(isPaidBy(url), [''], url)
  for (const url of ['/t/acme', '/t/acme?x', '/t/acme/mcp?x=/', 'http://127.0.0.1:1/t/acme/mcp'])
    t.same(isPaidBy(url), ['acme'], url)
  t.end()
})

for (const [what, standing] of Object.entries({ waits: 0, 'is refused late': 150 }))
  t.test(`no tenant that had work before pays for what ${what}`, (t) => {
    const { add, shares, letIn, spent } = turnsFor({ standing })
    shares.note('acme')
    shares.note('globex')
    letIn.tenant = ''
    for (const name of ['first', 'second']) add(name, true)
    t.notOk(shares.has(''), 'strangers have had their share')
    const comes = (tenant: string): void => {
      letIn.tenant = tenant
      add('begun', true)
      letIn.tenant = tenant === 'acme' ? '' : 'acme'
      for (let n = 0; n < 50; n++) {
        add('next')
        spent.ms += 0.02
      }
    }
    comes('acme')
    t.ok(shares.has('acme'), 'fifty strangers cost it nothing')
    comes('')
    t.notOk(shares.has('acme'), 'its own requests cost it')
    t.end()
  })
