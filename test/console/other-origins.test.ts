// Pages of other origins, in the browser of somebody who is signed in: they change nothing, whatever they send. Those of
// another port of the same host are of the same site, so the cookie goes with their requests.

import { createServer } from 'node:http'
import t from 'tap'
import { listen } from '../kit/listen.ts'
import { rig } from './shared-rig.ts'

const keysOf = async (): Promise<string> => (await rig.call('GET', '/v1/tenants/team')).text
const killsOf = async () => ((await rig.call('GET', '/v1/tenants/team/kills')).json as { items: unknown[] }).items

/** As scripts of a page send it, with the cookie of the browser. @returns the status; 0 where the browser refuses it */
const sent = (url: string, method: string, type: string, headers: object = {}): string => {
  const init = { method, credentials: 'include', headers: { 'Content-Type': type, ...headers } }
  return `fetch(${JSON.stringify(url)}, { ...${JSON.stringify(init)}, body: '{"name":"forged"}' })
    .then(({ status }) => status, () => 0)`
}

t.test('a page of another origin changes nothing; the console itself does', async (t) => {
  const keys = `${rig.adminUrl}/v1/tenants/team/keys`
  const kill = `${rig.adminUrl}/v1/tenants/team/kills/upstreams/notes`
  const form = `<form method="post" enctype="text/plain" action="${keys}"><input name='{"name":"forged","x":"' value='"}'></form>`
  const others = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end(`<!doctype html><title>Other</title>${form}`)
  })
  const port = new URL(await listen(t, others)).port
  const { page } = await rig.signedIn('overview')
  const token = await page.evaluate<string>(`localStorage.getItem('gatehouse-console-token')`)
  t.ok(token.length > 20)
  t.same(await killsOf(), [])

  // Of the same site, and of another one.
  for (const host of ['127.0.0.1', 'localhost']) {
    await page.goto(`http://${host}:${port}/`)
    t.equal(await page.evaluate(`localStorage.getItem('gatehouse-console-token')`), null, 'it has no token')
    const statuses = await page.evaluate<number[]>(
      `Promise.all([${[
        ...['text/plain', 'application/json', 'application/x-www-form-urlencoded'].map((type) =>
          sent(keys, 'POST', type)
        ),
        // Were the token known, the browser would still not let another origin send it.
        sent(keys, 'POST', 'application/json', { 'Gatehouse-Console': token }),
        sent(kill, 'PUT', 'application/json'),
        sent(`${rig.adminUrl}/console/session`, 'DELETE', 'application/json')
      ].join()}])`
    )
    t.same([...new Set(statuses)], [0], `no answer is read by ${host}`)
    const answering = page.waitForResponse((each) => each.url() === keys)
    const arriving = page.waitForURL(keys)
    await page.evaluate('document.forms[0].submit()')
    const answer = await answering
    await arriving
    t.ok(answer.status() >= 400 && answer.status() < 500, `its form is refused: ${answer.status()}`)
    t.notMatch(await keysOf(), 'forged')
    t.same(await killsOf(), [])
  }

  await page.goto(`${rig.adminUrl}/console/#/overview`)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  t.equal(await page.evaluate(sent(keys, 'POST', 'application/json')), 401, 'not without the token either')
  t.notMatch(await keysOf(), 'forged')
  t.equal(await page.evaluate(sent(keys, 'POST', 'application/json', { 'Gatehouse-Console': token })), 201)
  t.match(await keysOf(), 'forged', 'the control: from its own origin, with the token, it is done')
  await rig.call('DELETE', '/v1/tenants/team/keys/forged')
})
