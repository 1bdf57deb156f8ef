// A tenant whose people connect accounts and enter secrets, for tests in a real browser and for pictures of the pages.

import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { startUpstream } from '../kit/upstream.ts'
import type { Teardown } from '../kit/until.ts'
import { loginGateway } from '../login/kit.ts'

export async function connectionsRig(t: Teardown) {
  const server = await authorizationServer(t, { registration: true })
  const tracker = await protectedUpstream(t, server)
  const other = await authorizationServer(t, { registration: true, scopes: ['read', 'export'] })
  const notes = await protectedUpstream(t, other)
  // What their accounts are called there.
  const accountUrl = await listen(
    t,
    createServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"email":"ada.lovelace@example.com"}')
    )
  )
  const search = await startUpstream()
  t.teardown(() => search.close())
  const made = await gateway(t, {
    upstreams: {
      tracker: { type: 'http', url: tracker.url, auth: { type: 'user', accountUrl } },
      notes: { type: 'http', url: notes.url, auth: { type: 'user', accountUrl } },
      search: {
        type: 'http',
        url: search.url,
        auth: {
          type: 'userSecret',
          header: 'X-Api-Key',
          prefix: '',
          label: 'API key of Search',
          help: 'https://search.example.com/keys'
        }
      }
    },
    auth: { keys: Object.entries(keyOf).map(([name, key]) => ({ name, key })) },
    top: {
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: ['127.0.0.0/8'] }
    }
  })
  const call = async (name: string) => {
    const client = await legacyClient(made.url(), keyOf.ada, '2025-11-25', { elicitation: { url: {} } })
    return (await client.request('tools/call', { name, arguments: {} })).json
  }
  return {
    made,
    tracker,
    notes,
    pages: `${made.publicUrl}/t/acme/connections`,
    call,
    /** The link with which ada is asked to connect an upstream. */
    linkOf: async (upstream: string): Promise<string> =>
      (await call(`${upstream}__connect_${upstream}`)).error.data.elicitations[0].url as string
  }
}

/** The page of connections in a tenant with a login front. */
export async function signInRig(t: Teardown) {
  const search = await startUpstream()
  t.teardown(() => search.close())
  const auth = { type: 'userSecret', header: 'X-Api-Key', prefix: '', label: 'API key of Search' }
  const front = await loginGateway(t, {
    upstreams: { search: { type: 'http', url: search.url, auth } },
    endpoints: { default: { upstreams: ['search'] } },
    top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
  })
  front.provider.person = 'ada'
  return { front, page: `${front.origin}/t/acme/connections` }
}
