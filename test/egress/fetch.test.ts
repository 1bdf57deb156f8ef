import { createServer, type ServerResponse } from 'node:http'
import t from 'tap'
import { createFetch } from '../../src/egress/fetch.ts'
import { resource } from '../kit/authenticator.ts'
import { forgingIssuer, type Behaviour } from '../kit/forging-issuer.ts'
import { listen } from '../kit/listen.ts'

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

t.test('no kind of redirect is followed, nor what asks for one in other words', async (t) => {
  const seen: string[] = []
  let answer: (response: ServerResponse) => void = () => {}
  const url = await listen(
    t,
    createServer(({ url: path = '' }, response) => {
      seen.push(path)
      answer(response)
    })
  )
  const fetch = createFetch()
  const ask = () =>
    fetch(`${url}/asked`, { method: 'POST', headers: { authorization: 'Bearer secret' }, body: 'client_secret=word' })
  for (const status of [300, 301, 302, 303, 304, 305, 307, 308])
    for (const location of [
      `${url}/elsewhere`,
      `${url}/asked`,
      '/elsewhere',
      'http://169.254.169.254/',
      '//x.example'
    ]) {
      answer = (response) => response.writeHead(status, { location }).end()
      await t.rejects(ask(), { message: /redirects, which is not followed/ }, `${status} ${location}`)
    }
  answer = (response) =>
    response
      .writeHead(200, { refresh: `0; url=${url}/elsewhere`, location: `${url}/elsewhere`, link: '</elsewhere>' })
      .end('{}')
  const plain = await ask()
  t.same([plain.status, plain.redirected, await plain.text()], [200, false, '{}'])
  t.same([...new Set(seen)], ['/asked'], 'nothing else is asked')
  t.equal(seen.length, 41, 'and each once, also where it redirects to itself')
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
