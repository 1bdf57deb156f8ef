// Six ages of the official SDK as hosts: every feature that each has, through one endpoint of two upstreams, by each
// transport it has.

import { subscribe } from 'node:diagnostics_channel'
import t from 'tap'
import { EventSource } from 'undici'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { sseUrl } from '../kit/http-sse-client.ts'
import { breakableFetch, resumes } from './kit/broken-stream.ts'
import { connect, newest, sdks } from './kit/sdks.ts'
import { serverOf, startServer } from './kit/servers.ts'
import { tour } from './kit/tour.ts'
import { textOf } from './kit/tour-step.ts'

const house = await startHouse(t, {
  upstreams: {
    remote: { type: 'http', url: await startServer(t, serverOf(newest, 'http')) },
    local: serverOf(newest, 'stdio')
  },
  limits: { coldStartMs: 30_000 }
})
const { origin } = new URL(house.url())

// 1.0.4 takes EventSource from its environment, as it tells hosts to install one. Neither that nor the old ones after it can send a
// header with the stream, so it is added on undici's own channel, on which Node's fetch publishes too.
Object.assign(globalThis, { EventSource })
subscribe('undici:request:create', (message) => {
  const { request } = message as {
    request: {
      readonly origin: string | URL
      readonly path: string
      readonly method: string
      readonly headers: unknown
      addHeader(name: string, value: string): void
    }
  }
  if (new URL(request.origin).origin === origin && /\/(?:sse|messages)(?:\?|$)/.test(request.path))
    request.addHeader('authorization', `Bearer ${key}`)
})

for (const sdk of sdks) {
  for (const transport of sdk.transports) {
    t.test(`${sdk.name} over ${transport}`, async (t) => {
      const url = transport === 'http' ? house.url() : sseUrl(house.url())
      for (const upstream of ['remote', 'local']) {
        await t.test(`with ${upstream}`, async (t) => {
          const { client, types } = await connect(t, sdk, transport, url, transport === 'http' ? key : undefined)
          const steps = tour({
            client,
            types,
            clientKnows: sdk.revision,
            serverKnows: newest.revision,
            name: (own) => `${upstream}__${own}`,
            uri: (own) => `gatehouse://${upstream}/${own}`
          })
          for (const { name, run } of steps) await t.test(name, run)
        })
      }
    })
  }
}

t.test('the newest one comes back for the rest of a response whose stream breaks', async (t) => {
  for (const upstream of ['remote', 'local']) {
    await t.test(`of ${upstream}`, async (t) => {
      const breakable = breakableFetch()
      const { client } = await connect(t, newest, 'http', house.url(), key, { fetch: breakable.fetch })
      await resumes(breakable, async (steps, heard) => {
        const onprogress = ({ progress }: { readonly progress: number }): void => heard(progress)
        const params = { name: `${upstream}__progress`, arguments: { steps } }
        return textOf(await client.callTool(params, undefined, { onprogress }))
      })
    })
  }
})
