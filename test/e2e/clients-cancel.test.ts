// Cancellation: it reaches the upstream that owns the call, with the id that the call has there, and nobody else.

import t from 'tap'
import type { Json } from '../kit/mcp-server.ts'
import { until } from '../kit/until.ts'
import { forEverySdk } from './kit/stores-and-sdks.ts'
import { scripted } from './kit/scripted.ts'

const { upstreams, plain, streamed, localReceived } = await scripted(t)
const received: Record<string, () => Promise<Json[]>> = {
  plain: async () => plain.server.received,
  streamed: async () => streamed.server.received,
  local: localReceived
}
const cancellations = (messages: readonly Json[]): Json[] =>
  messages.filter(({ method }) => method === 'notifications/cancelled')

await forEverySdk(t, { upstreams }, async (t, { client, again }) => {
  for (const [name, messages] of Object.entries(received)) {
    await t.test(`a call of ${name} that its client cancels is cancelled there and nowhere else`, async (t) => {
      const before = new Map(
        await Promise.all(
          Object.entries(received).map(async ([other, all]) => [other, cancellations(await all()).length] as const)
        )
      )
      const other = await again()
      const started = {
        mine: Promise.withResolvers<void>(),
        neighbour: Promise.withResolvers<void>(),
        stranger: Promise.withResolvers<void>()
      }
      const slow = (
        caller: typeof client,
        upstream: string,
        mark: keyof typeof started,
        signal?: AbortSignal
      ): ReturnType<typeof client.callTool> =>
        caller.callTool({ name: `${upstream}__slow`, arguments: { mark } }, undefined, {
          onprogress: () => started[mark].resolve(),
          ...(signal === undefined ? {} : { signal })
        })

      const stop = new AbortController()
      const mine = slow(client, name, 'mine', stop.signal)
      const neighbour = slow(client, name, 'neighbour')
      const stranger = slow(other.client, name === 'plain' ? 'streamed' : 'plain', 'stranger')
      await Promise.all([started.mine.promise, started.neighbour.promise, started.stranger.promise])
      stop.abort(new Error('the person went home'))
      await t.rejects(mine, { message: /the person went home/ })

      const told = await until('the upstream hears of it', async () => {
        const found = cancellations(await messages()).slice(before.get(name))
        return found.length > 0 ? found : undefined
      })
      const owner = (await messages()).findLast(
        ({ params }) => (params as { arguments?: Json } | undefined)?.arguments?.['mark'] === 'mine'
      )
      t.type(owner?.['id'], 'number')
      t.match(told, [{ params: { requestId: owner?.['id'] } }])
      t.equal(told.length, 1)
      for (const [upstream, all] of Object.entries(received)) {
        if (upstream !== name)
          t.equal(cancellations(await all()).length, before.get(upstream), `${upstream} hears nothing`)
      }

      await client.callTool({ name: `${name}__release` })
      plain.server.release()
      streamed.server.release()
      for (const call of [neighbour, stranger])
        t.match(await call, { content: [{ text: 'slow is done' }] }, 'the others go on to their end')
    })
  }
})
