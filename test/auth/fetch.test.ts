import t from 'tap'
import { createFetch } from '../../src/auth/fetch.ts'
import { resource } from '../kit/authenticator.ts'
import { forgingIssuer, type Behaviour } from '../kit/forging-issuer.ts'

t.test('an answer is whole, plain, small and from the address that was asked, or there is none', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const [fetch, hasty] = [createFetch(), createFetch({ timeoutMs: 500 })]
  for (const behaviour of ['redirect', 'gzip', 'huge', 'endless', 'hanging'] satisfies Behaviour[]) {
    idp.behaviour = behaviour
    await t.rejects(hasty(idp.jwksUri), behaviour)
  }
  idp.behaviour = 'good'
  const good = await fetch(idp.jwksUri)
  t.same([good.status, await good.json()], [200, { keys: [idp.key.jwk] }])
  idp.behaviour = 'down'
  t.equal((await fetch(idp.jwksUri)).status, 503, 'a status is for the caller to judge')
  t.notOk(idp.requests.includes('/elsewhere'))
})

t.test('the limit is met to the byte', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const size = JSON.stringify({ keys: [idp.key.jwk] }).length
  t.equal((await createFetch({ maxBytes: size })(idp.jwksUri)).status, 200)
  await t.rejects(createFetch({ maxBytes: size - 1 })(idp.jwksUri))
})

t.test('an aborted caller gets no answer', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  await t.rejects(createFetch()(idp.jwksUri, { signal: AbortSignal.abort() }))
  t.equal((await createFetch()(idp.jwksUri, { signal: new AbortController().signal })).status, 200)
})
