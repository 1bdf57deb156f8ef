// Every feature of the protocol, one after the other, with a client of any version through the gateway to a server of
// any version or language. The servers under test/interop all have the same tools, prompts and resources, which is what
// this file knows of them.

import assert from 'node:assert/strict'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { heardDuring, stepsOf } from '../../kit/progress.ts'
import { until } from '../../kit/until.ts'
import { asking } from './tour-asking.ts'
import { textOf, type Heard, type Result, type Step, type Tour } from './tour-step.ts'

/** What fits both ends of the visit, in an order that works: later steps rely on no earlier one. */
export function tour(visit: Tour): Step[] {
  const { client, types, clientKnows, serverKnows, name, uri } = visit
  const both = clientKnows < serverKnows ? clientKnows : serverKnows
  const call = (tool: string, args: Record<string, unknown> = {}): Promise<Result> =>
    client.callTool({ name: name(tool), arguments: args })
  const heard: Heard[] = []
  client.fallbackNotificationHandler = async (notification) => {
    heard.push(notification as Heard)
  }

  return [
    {
      name: 'answers a ping',
      run: async () => {
        await client.ping()
      }
    },
    {
      name: 'lists tools, from all pages',
      async run() {
        const names = await allTools(client)
        for (const tool of ['echo', 'progress', 'wait', 'content', 'fail'])
          assert.ok(names.includes(name(tool)), `${tool} is not among ${names.join(', ')}`)
      }
    },
    {
      name: 'calls a tool, and hears what fails, and how',
      async run() {
        const result = await call('echo', { text: 'Grüße, 世界 "\\' })
        assert.equal(textOf(result), 'Grüße, 世界 "\\')
        if (both >= '2025-06-18') assert.deepEqual(result.structuredContent, { text: 'Grüße, 世界 "\\' })
        assert.equal((await call('fail')).isError, true)
        await assert.rejects(client.callTool({ name: name('nobody'), arguments: {} }), isError(-32602))
      }
    },
    {
      name: 'gets content of every kind that both know',
      async run() {
        const { content } = await call('content')
        const kinds = (content as Array<{ type: string }>).map(({ type }) => type)
        const audio = serverKnows < '2025-03-26' ? [] : [clientKnows < '2025-03-26' ? 'resource' : 'audio']
        const link = serverKnows < '2025-06-18' ? [] : [clientKnows < '2025-06-18' ? 'text' : 'resource_link']
        assert.deepEqual(kinds, ['text', 'image', 'resource', ...audio, ...link])
        const embedded = (content as Array<{ resource: { uri: string } }>)[2]?.resource
        assert.deepEqual((await client.readResource({ uri: embedded?.uri ?? '' })).contents, [embedded])
      }
    },
    {
      name: 'hears progress in order, before the result',
      async run() {
        const heard = await heardDuring(client, () =>
          client.callTool({ name: name('progress'), arguments: { steps: 3 } }, undefined, { onprogress() {} })
        )
        assert.deepEqual(stepsOf(heard), [[1, 3], [2, 3], [3, 3], 'result'])
      }
    },
    {
      name: 'cancels a call, and the server hears of it',
      async run() {
        const before = Number(textOf(await call('cancelled')))
        const stop = new AbortController()
        const calling = client.callTool({ name: name('wait'), arguments: {} }, undefined, {
          signal: stop.signal,
          onprogress: () => stop.abort(new Error('enough'))
        })
        await assert.rejects(calling, /enough/)
        await until('the server hears of it', async () => Number(textOf(await call('cancelled'))) === before + 1)
      }
    },
    {
      name: 'lists and reads resources, and those of templates',
      async run() {
        const { resources } = await client.listResources()
        assert.ok(resources.some((resource) => resource.uri === uri('test://one')))
        const { resourceTemplates } = await client.listResourceTemplates()
        assert.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === uri('test://item/{id}')))
        assert.deepEqual(await contentsOf(client, uri('test://one')), ['one'])
        assert.deepEqual(await contentsOf(client, uri('test://item/7')), ['item 7'])
        await assert.rejects(client.readResource({ uri: uri('test://nothing') }), isError(-32002, -32602, -32603, 0))
      }
    },
    {
      name: 'subscribes to a resource, hears that it changed, and no more after it left',
      async run() {
        const updates = (): Heard[] =>
          heard.filter(
            ({ method, params }) =>
              method === 'notifications/resources/updated' && params?.['uri'] === uri('test://one')
          )
        assert.equal(textOf(await call('touch')), 'nobody subscribed')
        await client.subscribeResource({ uri: uri('test://one') })
        await until('the update', async () => {
          assert.equal(textOf(await call('touch')), 'touched')
          return updates().length > 0
        })
        await client.unsubscribeResource({ uri: uri('test://one') })
        assert.equal(textOf(await call('touch')), 'nobody subscribed')
      }
    },
    {
      name: 'lists and gets prompts',
      async run() {
        const { prompts } = await client.listPrompts()
        assert.ok(prompts.some((prompt) => prompt.name === name('greet')))
        const { messages } = await client.getPrompt({ name: name('greet'), arguments: { who: 'Ada' } })
        assert.deepEqual(
          messages.map(({ content }) => content),
          [{ type: 'text', text: 'hello Ada' }]
        )
      }
    },
    {
      name: 'completes arguments of prompts and of templates',
      async run() {
        const ofPrompt = await client.complete({
          ref: { type: 'ref/prompt', name: name('greet') },
          argument: { name: 'who', value: 'al' }
        })
        assert.deepEqual(ofPrompt.completion.values, ['alpha', 'alpine'])
        const ofTemplate = await client.complete({
          ref: { type: 'ref/resource', uri: uri('test://item/{id}') },
          argument: { name: 'id', value: 'be' }
        })
        assert.deepEqual(ofTemplate.completion.values, ['beta'])
      }
    },
    {
      name: 'hears the log from the level it asked for',
      async run() {
        await client.setLoggingLevel('info')
        await call('log')
        const { params } = await until('a line of the log', () =>
          heard.find(({ method }) => method === 'notifications/message')
        )
        assert.equal(params?.['level'], 'info')
        assert.equal(params?.['data'], 'a line')
      }
    },
    {
      name: 'hears that the tools changed, and lists the new one',
      async run() {
        await until('the change', async () => {
          await call('grow')
          return heard.some(({ method }) => method === 'notifications/tools/list_changed')
        })
        assert.ok((await allTools(client)).includes(name('grown')))
      }
    },
    ...asking(visit, call, both, types)
  ]
}

async function allTools(client: Client): Promise<string[]> {
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    names.push(...page.tools.map((tool) => tool.name))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return names
}

async function contentsOf(client: Client, uri: string): Promise<unknown[]> {
  const { contents } = await client.readResource({ uri })
  return contents.map((content) => {
    assert.equal(content.uri, uri)
    return (content as { text?: string }).text
  })
}

const isError =
  (...codes: number[]) =>
  (error: unknown): boolean =>
    codes.includes((error as { code: number }).code)
