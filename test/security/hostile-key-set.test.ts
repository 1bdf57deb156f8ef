// Attack: the key set of an issuer is huge, endless, slow, redirected, compressed, or no key set at all.

import t from 'tap'
import { getEventListeners } from 'node:events'
import { createFetch } from '../../src/egress/fetch.ts'
import { readKeySet } from '../../src/auth/key-set.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { type Behaviour, forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()
const behaviours: Behaviour[] = [
  'huge',
  'endless',
  'hanging',
  'redirect',
  'html',
  'crowd',
  'duplicates',
  'gzip',
  'down'
]

for (const behaviour of behaviours) {
  t.test(`a key set that is ${behaviour} is not taken, and the last good one is kept`, async (t) => {
    const idp = await forgingIssuer(t, { resource, now })
    // Only what hangs is not waited for: a busy machine is late with what is good, too.
    const [patient, hasty] = [createFetch({ timeoutMs: 30_000 }), createFetch({ timeoutMs: 300 })]
    const fetch: typeof patient = (url, init) => (idp.behaviour === 'hanging' ? hasty : patient)(url, init)
    const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }), { fetch })
    const exp = Math.floor(now / 1000) + 3600
    t.equal(outcome(await auth.present(await idp.sign({ exp }))), 'ada')
    idp.behaviour = behaviour
    auth.clock.advance(11 * 60_000)
    const before = process.memoryUsage().rss
    t.equal(outcome(await auth.present(await idp.sign({ exp }))), 'ada', 'by the kept keys')
    t.ok(process.memoryUsage().rss - before < 50 * 1024 * 1024, 'without holding its bytes')
    t.equal(auth.lines.filter((line) => line['msg'] === 'keys of an issuer cannot be fetched').length, 1)
    t.equal(idp.requests.includes('/elsewhere'), false)

    const fresh = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }), { fetch })
    t.equal(outcome(await fresh.present(await idp.sign({ exp }))), 503, 'and with no good one there is none')
    idp.behaviour = 'good'
    fresh.clock.advance(5000)
    t.equal(outcome(await fresh.present(await idp.sign({ exp }))), 'ada')
  })
}

t.test('a hundred keys are taken, and not one more', async (t) => {
  const key = (index: number) => ({ kty: 'EC', crv: 'P-256', kid: String(index), x: String(index), y: '' })
  t.equal(readKeySet({ keys: Array.from({ length: 100 }, (_, index) => key(index)) }).size, 100)
  t.throws(() => readKeySet({ keys: Array.from({ length: 101 }, (_, index) => key(index)) }))
})

t.test('the same key twice is one key, and two under one name are none', async (t) => {
  const { key } = await forgingIssuer(t, { resource, now })
  t.equal(readKeySet({ keys: [key.jwk, key.jwk] }).size, 1)
  t.throws(() => readKeySet({ keys: [key.jwk, { ...key.jwk, x: key.jwk.y }] }))
})

t.test('what is not a key set is not taken', async (t) => {
  for (const document of [null, [], {}, { keys: {} }, { keys: [null] }, { keys: ['a'] }, 'keys'])
    t.throws(() => readKeySet(document), JSON.stringify(document))
  t.equal(readKeySet({ keys: [] }).size, 0, 'an empty one is one: all its tokens are refused')
})

t.test('a fetch leaves no listener at the signal of its caller', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const { signal } = new AbortController()
  const response = await createFetch()(idp.jwksUri, { signal })
  t.equal(response.status, 200)
  t.equal(getEventListeners(signal, 'abort').length, 0)
})
