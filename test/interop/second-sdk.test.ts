// The second SDK as host and as server, in both eras: a client that speaks the old one, one that finds out, and one
// that insists on the new one, through one endpoint with a server of that SDK over HTTP, one over stdio, and one of the
// first SDK.

import { fileURLToPath } from 'node:url'
import {
  Client,
  StreamableHTTPClientTransport,
  type ClientOptions,
  type StreamableHTTPClientTransportOptions
} from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { key } from '../kit/gateway.ts'
import { replicaCount, startHouse } from '../kit/replicas.ts'
import { breakableFetch, resumes } from './kit/broken-stream.ts'
import { newest } from './kit/sdks.ts'
import { secondTour, type Peer } from './kit/second-tour.ts'
import { serverOf, startServer } from './kit/servers.ts'

const program = fileURLToPath(new URL('servers/second.ts', import.meta.url))
const second = (transport: 'http' | 'stdio') => ({ command: process.execPath, args: [program, transport] })
const remote = await startServer(t, second('http'))
const first = await startServer(t, serverOf(newest, 'http'))

const house = await startHouse(t, {
  upstreams: {
    remote: { type: 'http', url: remote },
    local: second('stdio'),
    first: { type: 'http', url: first },
    insisted: { type: 'http', url: remote, era: 'modern' }
  },
  limits: { coldStartMs: 30_000 }
})

type Mode = NonNullable<NonNullable<ClientOptions['versionNegotiation']>['mode']>
type Era = 'legacy' | 'modern'

const modes: Array<[title: string, mode: Mode, era: Era]> = [
  ['a client of the old era', 'legacy', 'legacy'],
  ['a client that finds out', 'auto', 'modern'],
  ['a client that insists on the new era', { pin: '2026-07-28' }, 'modern']
]

const all: Peer = { tells: true, grows: true, asks: true, cancels: true }
/** What each upstream can do for a client of each era. */
const peers: Record<string, Record<Era, Peer>> = {
  // Its older era has no sessions, in which there would be nobody to tell, ask or cancel.
  remote: { legacy: all, modern: all },
  // A process for each person, and one more that the lists are read from.
  local: { legacy: all, modern: { ...all, grows: false } },
  // Its list of tools is a session's own, and a newer client has no session. So is its count of cancelled calls, and
  // each replica has a session there.
  first: { legacy: all, modern: { tells: false, grows: false, asks: false, cancels: replicaCount === 1 } },
  insisted: { legacy: all, modern: all }
}

async function connected(t: Test, mode: Mode, more: StreamableHTTPClientTransportOptions = {}): Promise<Client> {
  const client = new Client(
    { name: 'second', version: '2' },
    { capabilities: { sampling: {}, roots: {}, elicitation: { form: {} } }, versionNegotiation: { mode } }
  )
  await client.connect(
    new StreamableHTTPClientTransport(new URL(house.url()), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
      ...more
    })
  )
  t.teardown(() => client.close())
  return client
}

for (const [title, mode, era] of modes) {
  t.test(title, async (t) => {
    for (const [upstream, peer] of Object.entries(peers)) {
      await t.test(`with ${upstream}`, async (t) => {
        const steps = secondTour({
          client: await connected(t, mode),
          era,
          peer: peer[era],
          name: (own) => `${upstream}__${own}`,
          uri: (own) => `gatehouse://${upstream}/${own}`
        })
        for (const { name, run } of steps) await t.test(name, run)
      })
    }
  })
}

t.test('a client of the old era comes back for the rest of a response whose stream breaks', async (t) => {
  const breakable = breakableFetch()
  const client = await connected(t, 'legacy', { fetch: breakable.fetch })
  await resumes(breakable, async (steps, heard) => {
    const onprogress = ({ progress }: { readonly progress: number }): void => heard(progress)
    const { content } = await client.callTool({ name: 'first__progress', arguments: { steps } }, { onprogress })
    return (content as Array<{ text: string }>)[0]?.text ?? ''
  })
})
