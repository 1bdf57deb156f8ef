// What passes through unchanged: unknown members, _meta, errors, large results, floods of progress. Scripted servers,
// since the real ones send nothing unknown.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { heardDuring } from '../kit/progress.ts'
import { until } from '../kit/until.ts'
import { forEverySdk } from './kit/stores-and-sdks.ts'
import { scripted, scriptedNames } from './kit/scripted.ts'

const { upstreams, plain } = await scripted(t)

await forEverySdk(t, { upstreams }, async (t, { client, url, next }) => {
  const raw = await legacyClient(url, key)
  t.teardown(() => raw.end())
  const direct = await legacyClient(plain.url, undefined)
  t.teardown(() => direct.end())

  for (const name of scriptedNames) {
    await t.test(`content of every type, known or not, comes through ${name} as it was sent`, async (t) => {
      const own = await direct.request('tools/call', { name: 'content', arguments: {} })
      const through = await raw.request('tools/call', { name: `${name}__content`, arguments: {} })
      t.match(
        own.json.result,
        { resultType: 'unknown to us', structuredContent: { big: 1e21 } },
        'there is something to keep'
      )
      t.match(JSON.stringify(through.json.result), `gatehouse://${name}/test://one`)
      t.equal(
        JSON.stringify(through.json.result).replaceAll(`gatehouse://${name}/`, ''),
        JSON.stringify(own.json.result),
        'but for the URIs'
      )
    })

    await t.test(`unknown members of a tool of ${name} stand in its list`, async (t) => {
      const { json } = await raw.request('tools/list')
      const tool = json.result.tools.find((tool: { name: string }) => tool.name === `${name}__echo`)
      t.same(tool, {
        name: `${name}__echo`,
        description: 'the echo tool',
        inputSchema: { type: 'object' },
        'x-unknown': { kept: true }
      })
    })

    await t.test(`_meta of a request reaches ${name}, and that of its result the client`, async (t) => {
      const meta = {
        'com.example/trace': { id: 'abc', nested: [1, null] },
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
      }
      const args = { text: 'Grüße 𝄞', empty: null, deep: { list: [true, 1.5, ''] } }
      const result = await client.callTool({ name: `${name}__echo`, arguments: args, _meta: meta })
      t.same(result.structuredContent, { arguments: args, meta })
      t.same(result._meta, { 'test/kept': true })
    })

    await t.test(
      `a tool of ${name} that failed is a result, and an error of its server an error, verbatim`,
      async (t) => {
        t.same(await client.callTool({ name: `${name}__fail`, arguments: {} }), {
          content: [{ type: 'text', text: 'it went wrong' }],
          isError: true
        })
        const data = { why: { deep: ['because'] } }
        await t.rejects(
          client.callTool({ name: `${name}__rpcerror`, arguments: { code: -31999, message: 'no such thing', data } }),
          { code: -31999, message: /no such thing$/, data }
        )
      }
    )

    await t.test(`a mebibyte goes to ${name} and comes back whole`, async (t) => {
      const text = 'ä€𝄞 '.repeat(2 ** 20 / 10)
      const result = await client.callTool({ name: `${name}__echo`, arguments: { text } })
      t.ok((result.structuredContent as { arguments: { text: string } }).arguments.text === text)
      const big = await client.callTool({ name: `${name}__big`, arguments: { bytes: 2 ** 21 } })
      t.equal((big.content as Array<{ text: string }>)[0]?.text.length, 2 ** 21)
    })

    await t.test(`five hundred progress messages of ${name} arrive in order, and the result after them`, async (t) => {
      const heard = await heardDuring(client, async () =>
        t.match(
          await client.callTool({ name: `${name}__progress`, arguments: { steps: 500 } }, undefined, {
            onprogress() {}
          }),
          { content: [{ text: 'all steps done' }] }
        )
      )
      t.same(
        heard.map((each) => (each === 'result' ? each : `${each.progress} ${each.message}`)),
        [...Array.from({ length: 500 }, (_, at) => `${at + 1} step ${at + 1}`), 'result']
      )
    })

    for (const token of ['a token of the client', 0]) {
      await t.test(`progress of ${name} carries the client's own token, a ${typeof token}`, async (t) => {
        const { messages } = await raw.request('tools/call', {
          name: `${name}__progress`,
          arguments: { steps: 2 },
          _meta: { progressToken: token }
        })
        t.same(
          messages.map(({ params }) => params?.progressToken),
          [token, token, undefined]
        )
      })
    }

    await t.test(`a tool that ${name} gains is reported and can be called`, async (t) => {
      const grown = `grown-${crypto.randomUUID()}`
      const changed = next('the list of tools changed', ({ method }) => method === 'notifications/tools/list_changed')
      await client.callTool({ name: `${name}__grow`, arguments: { name: grown } })
      await changed
      await until('the tool is listed', async () =>
        (await client.listTools()).tools.some((tool) => tool.name === `${name}__${grown}`)
      )
      await t.rejects(
        client.callTool({ name: `${name}__${grown}` }),
        { message: /Unknown tool: grown-/ },
        "the answer is the server's own"
      )
    })
  }
})
