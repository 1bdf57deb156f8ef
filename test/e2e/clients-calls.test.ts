// Tool calls to three real servers through one endpoint: results are what the servers answer to a client of their own.

import t from 'tap'
import { heardDuring, stepsOf } from '../kit/progress.ts'
import { forEveryStoreAndSdk } from './kit/stores-and-sdks.ts'
import { everythingOverStdio, realUpstreams } from './kit/real-servers.ts'
import { direct } from './kit/sdk.ts'

const [upstreams, everything] = await Promise.all([
  realUpstreams(t),
  direct(t, everythingOverStdio.command, everythingOverStdio.args)
])

/** Every kind of content that the server has, and its errors. */
const calls = [
  ['text', 'echo', { message: 'Grüße, 世界 \u0000 "\\' }],
  ['annotated text and an image', 'get-annotated-message', { messageType: 'error', includeImage: true }],
  ['an image between texts', 'get-tiny-image', {}],
  ['structured content', 'get-structured-content', { location: 'Chicago' }],
  ['an error of the tool', 'get-sum', { a: 'not a number' }]
] as const

await forEveryStoreAndSdk(t, { upstreams }, async (t, { client, again }) => {
  for (const upstream of ['everything', 'remote']) {
    for (const [what, name, args] of calls) {
      await t.test(`${upstream} answers with ${what}`, async (t) => {
        const own = await everything.callTool({ name, arguments: args })
        t.same(await client.callTool({ name: `${upstream}__${name}`, arguments: args }), own)
      })
    }

    await t.test(
      `resources linked or embedded in results of ${upstream} can be read under the URI that stands there`,
      async (t) => {
        const links = await client.callTool({ name: `${upstream}__get-resource-links`, arguments: { count: 2 } })
        const [, blob, text] = links.content as Array<{ type: string; uri: string }>
        t.match(blob, { type: 'resource_link', uri: `gatehouse://${upstream}/demo://resource/dynamic/blob/1` })
        t.match(text, { type: 'resource_link', uri: `gatehouse://${upstream}/demo://resource/dynamic/text/2` })
        for (const { uri } of [blob, text].filter((link) => link !== undefined)) {
          t.match(await client.readResource({ uri }), { contents: [{ uri }] })
        }
        const embedded = await client.callTool({
          name: `${upstream}__get-resource-reference`,
          arguments: { resourceType: 'Blob', resourceId: 7 }
        })
        const uri = `gatehouse://${upstream}/demo://resource/dynamic/blob/7`
        t.match(embedded.content, [
          { type: 'text' },
          { type: 'resource', resource: { uri, blob: /.+/ } },
          { type: 'text' }
        ])
      }
    )

    await t.test(`progress of ${upstream} comes in order, completely, before the result`, async (t) => {
      const total = 20
      const heard = await heardDuring(client, async () =>
        t.match(
          await client.callTool(
            { name: `${upstream}__trigger-long-running-operation`, arguments: { duration: 0.1, steps: total } },
            undefined,
            { onprogress() {} }
          ),
          { content: [{ text: `Long running operation completed. Duration: 0.1 seconds, Steps: ${total}.` }] }
        )
      )
      t.same(stepsOf(heard), [...Array.from({ length: total }, (_, at) => [at + 1, total]), 'result'])
    })

    await t.test(`a cancelled call of ${upstream} ends for the caller, and the session goes on`, async (t) => {
      const stop = new AbortController()
      const call = client.callTool(
        { name: `${upstream}__trigger-long-running-operation`, arguments: { duration: 600, steps: 60_000 } },
        undefined,
        {
          signal: stop.signal,
          onprogress: () => stop.abort(new Error('changed my mind'))
        }
      )
      await t.rejects(call, { message: /changed my mind/ })
      t.match(await client.callTool({ name: `${upstream}__echo`, arguments: { message: 'still here' } }), {
        content: [{ text: 'Echo: still here' }]
      })
    })
  }

  await t.test('memory keeps what one call writes for the next one', async (t) => {
    const entity = { name: `Ada ${crypto.randomUUID()}`, entityType: 'person', observations: ['wrote programs'] }
    const written = await client.callTool({ name: 'memory__create_entities', arguments: { entities: [entity] } })
    t.same(written.structuredContent, { entities: [entity] })
    const found = await client.callTool({ name: 'memory__open_nodes', arguments: { names: [entity.name] } })
    t.match(found.structuredContent, { entities: [entity] })
    await client.callTool({ name: 'memory__delete_entities', arguments: { entityNames: [entity.name] } })
    t.match(
      (await client.callTool({ name: 'memory__open_nodes', arguments: { names: [entity.name] } })).structuredContent,
      { entities: [] }
    )
  })

  await t.test('an unknown tool and a name without its prefix are unknown', async (t) => {
    await t.rejects(client.callTool({ name: 'everything__no-such-tool' }), { code: -32602, message: /Unknown tool/ })
    await t.rejects(client.callTool({ name: 'echo', arguments: { message: 'hi' } }), {
      code: -32602,
      message: /Unknown tool/
    })
  })

  await t.test('calls of two sessions at once each get their own answers', async (t) => {
    const other = await again()
    const answers = await Promise.all(
      [client, other.client].flatMap((caller, who) =>
        Array.from({ length: 20 }, async (_, at) => {
          const upstream = at % 2 === 0 ? 'everything' : 'remote'
          const result = await caller.callTool({ name: `${upstream}__echo`, arguments: { message: `${who} ${at}` } })
          return [result.content, [{ type: 'text', text: `Echo: ${who} ${at}` }]]
        })
      )
    )
    for (const [got, wanted] of answers) t.same(got, wanted)
  })
})
