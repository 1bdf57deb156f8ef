// Six ages of the official SDK as servers behind the gateway, over stdio and each HTTP transport they have, met with
// the newest client.

import t from 'tap'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { connect, newest, sdks } from './kit/sdks.ts'
import { serverOf, startServer } from './kit/servers.ts'
import { tour } from './kit/tour.ts'

for (const sdk of sdks) {
  for (const transport of ['stdio', ...sdk.transports] as const) {
    t.test(`${sdk.name} over ${transport}`, async (t) => {
      const program = serverOf(sdk, transport)
      const house = await startHouse(t, {
        upstreams: { up: transport === 'stdio' ? program : { type: 'http', url: await startServer(t, program) } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } },
        limits: { coldStartMs: 30_000 }
      })
      const { client, types } = await connect(t, newest, 'http', house.url(), key)
      const same = (own: string): string => own
      for (const { name, run } of tour({
        client,
        types,
        clientKnows: newest.revision,
        serverKnows: sdk.revision,
        name: same,
        uri: same
      }))
        await t.test(name, run)
    })
  }
}
