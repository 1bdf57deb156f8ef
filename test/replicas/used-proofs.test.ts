// A proof of DPoP is good once at all replicas together, and a nonce that one gave is good at all; while they cannot ask
// each other, a proof is good at none.

import t from 'tap'
import { initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { keyHolder } from '../kit/dpop.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { startUpstream } from '../kit/upstream.ts'
import { startReplicas } from './rig.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
const rig = await startReplicas(t, {
  upstreams: { up: { type: 'http', url: upstream.url } },
  auth: { issuers: [{ issuer: idp.issuer, jwksUri: idp.jwksUri }], dpopNonces: true }
})
const client = await keyHolder()
const url = rig.url()
const token = await idp.sign({ aud: url, cnf: { jkt: client.thumbprint } })
let nonce: string | undefined
const proof = () => client.proof({ url, token, claims: { nonce } })
const present = (node: number, dpop: string, authorization = `DPoP ${token}`) =>
  send(rig.at(node), { headers: { ...jsonHeaders, authorization, dpop }, body: initializeBody() })

t.test('the nonce that one replica gives is good at all', async (t) => {
  const { status, headers } = await present(0, await proof())
  t.equal(status, 401)
  nonce = String(headers['dpop-nonce'])
  for (const node of [0, 1, 2]) t.equal((await present(node, await proof())).status, 200)
})

t.test('a proof that one replica has seen is refused by all', async (t) => {
  const used = await proof()
  t.equal((await present(0, used)).status, 200)
  for (const node of [0, 1, 2]) t.equal((await present(node, used)).status, 401, String(node))
  const raced = await proof()
  const statuses = await Promise.all([0, 1, 2].map(async (node) => (await present(node, raced)).status))
  t.same(
    statuses.toSorted((a, b) => a - b),
    [200, 401, 401]
  )
  for (const node of [0, 1, 2]) t.equal((await present(node, await proof())).status, 200)
})

t.test('without the store nobody is let in by a proof', async (t) => {
  await rig.store.stop()
  for (const node of [0, 1, 2]) {
    const { status, headers } = await present(node, await proof())
    t.equal(status, 503)
    t.match(headers, { 'retry-after': /\d/ })
  }
})
