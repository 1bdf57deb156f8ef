// Every feature of the protocol with a client of the second SDK, in either era, through the gateway to a server of the
// tour.

import assert from 'node:assert/strict'
import type { Client } from '@modelcontextprotocol/client'
import { heardDuring, stepsOf } from '../../kit/progress.ts'
import { until } from '../../kit/until.ts'
import type { Heard, Step } from './tour-step.ts'

/** What a server is known for, beside what all have. */
export interface Peer {
  /** Does it tell of changes by itself, in this client's era? */
  readonly tells: boolean
  /** Are its lists those of the very process that serves the client? */
  readonly grows: boolean
  /** Can it ask this client something? */
  readonly asks: boolean
  /** Does it hear of cancellation? */
  readonly cancels: boolean
}

export interface SecondTour {
  readonly client: Client
  readonly era: 'legacy' | 'modern'
  readonly peer: Peer
  name(own: string): string
  uri(own: string): string
}

export function secondTour({ client, era, peer, name, uri }: SecondTour): Step[] {
  const modern = era === 'modern'
  const heard: Heard[] = []
  const hear = async (notification: unknown): Promise<void> => {
    heard.push(notification as Heard)
  }
  client.fallbackNotificationHandler = hear
  const call = (tool: string, args: Record<string, unknown> = {}) =>
    client.callTool({ name: name(tool), arguments: args })
  const textOf = ({ content }: Awaited<ReturnType<typeof call>>): string =>
    (content as Array<{ text: string }>)[0]?.text ?? ''
  const toolNames = async (): Promise<string[]> =>
    (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map((tool) => tool.name)

  const steps: Array<Step & { readonly needs?: keyof Peer }> = [
    {
      name: `speaks the ${era} era`,
      async run() {
        assert.equal(client.getProtocolEra(), era)
        assert.equal(client.getNegotiatedProtocolVersion(), modern ? '2026-07-28' : '2025-11-25')
      }
    },
    {
      name: 'lists tools',
      async run() {
        const names = await toolNames()
        for (const tool of ['echo', 'progress', 'wait', 'content', 'fail'])
          assert.ok(names.includes(name(tool)), `${tool} is not among ${names.join(', ')}`)
      }
    },
    {
      name: 'calls a tool, and hears what fails, and how',
      async run() {
        const result = await call('echo', { text: 'Grüße, 世界 "\\' })
        assert.equal(textOf(result), 'Grüße, 世界 "\\')
        assert.deepEqual(result.structuredContent, { text: 'Grüße, 世界 "\\' })
        assert.equal((await call('fail')).isError, true)
        await assert.rejects(client.callTool({ name: name('nobody'), arguments: {} }), isError(-32602))
      }
    },
    {
      name: 'gets content of every kind',
      async run() {
        const { content } = await call('content')
        assert.deepEqual(
          (content as Array<{ type: string }>).map(({ type }) => type),
          ['text', 'image', 'resource', 'audio', 'resource_link']
        )
        const embedded = (content as unknown as Array<{ resource: { uri: string } }>)[2]?.resource
        assert.deepEqual((await client.readResource({ uri: embedded?.uri ?? '' })).contents, [embedded])
      }
    },
    {
      name: 'hears progress in order, before the result',
      async run() {
        const heard = await heardDuring(client, () =>
          client.callTool({ name: name('progress'), arguments: { steps: 3 } }, { onprogress() {} })
        )
        assert.deepEqual(stepsOf(heard), [[1, 3], [2, 3], [3, 3], 'result'])
      }
    },
    {
      name: 'cancels a call, and the server hears of it',
      needs: 'cancels',
      async run() {
        const before = Number(textOf(await call('cancelled')))
        const stop = new AbortController()
        const calling = client.callTool(
          { name: name('wait'), arguments: {} },
          { signal: stop.signal, onprogress: () => stop.abort(new Error('enough')) }
        )
        await assert.rejects(calling, /enough/)
        await until('the server hears of it', async () => Number(textOf(await call('cancelled'))) === before + 1)
      }
    },
    {
      name: 'lists and reads resources, and those of templates',
      async run() {
        assert.ok((await client.listResources()).resources.some((resource) => resource.uri === uri('test://one')))
        assert.ok(
          (await client.listResourceTemplates()).resourceTemplates.some(
            ({ uriTemplate }) => uriTemplate === uri('test://item/{id}')
          )
        )
        for (const [own, text] of [
          ['test://one', 'one'],
          ['test://item/7', 'item 7']
        ] as const) {
          const { contents } = await client.readResource({ uri: uri(own) })
          assert.deepEqual(
            contents.map((content) => [content.uri, (content as { text?: string }).text]),
            [[uri(own), text]]
          )
        }
        // The one that knows the code of older revisions only is corrected for newer clients.
        await assert.rejects(
          client.readResource({ uri: uri('test://nothing') }),
          modern ? isError(-32602) : isError(-32002, -32602)
        )
      }
    },
    {
      name: 'lists and gets prompts, and completes their arguments',
      async run() {
        assert.ok((await client.listPrompts()).prompts.some((prompt) => prompt.name === name('greet')))
        const { messages } = await client.getPrompt({ name: name('greet'), arguments: { who: 'Ada' } })
        assert.deepEqual(
          messages.map(({ content }) => content),
          [{ type: 'text', text: 'hello Ada' }]
        )
        const { completion } = await client.complete({
          ref: { type: 'ref/prompt', name: name('greet') },
          argument: { name: 'who', value: 'al' }
        })
        assert.deepEqual(completion.values, ['alpha', 'alpine'])
        const ofTemplate = await client.complete({
          ref: { type: 'ref/resource', uri: uri('test://item/{id}') },
          argument: { name: 'id', value: 'be' }
        })
        assert.deepEqual(ofTemplate.completion.values, ['beta'])
      }
    },
    {
      name: 'hears the log from the level it asked for, and only then',
      async run() {
        const lines = (): Heard[] => heard.filter(({ method }) => method === 'notifications/message')
        client.setNotificationHandler('notifications/message', hear)
        if (modern) {
          await call('log')
          assert.deepEqual(lines(), [])
          await client.callTool({
            name: name('log'),
            arguments: {},
            _meta: { 'io.modelcontextprotocol/logLevel': 'info' }
          })
        } else {
          await client.setLoggingLevel('info')
          await call('log')
        }
        const { params } = await until('a line of the log', () => lines()[0])
        assert.equal(params?.['data'], 'a line')
      }
    },
    {
      name: 'hears that a resource changed',
      needs: 'tells',
      async run() {
        client.setNotificationHandler('notifications/resources/updated', hear)
        const subscribed = modern ? await client.listen({ resourceSubscriptions: [uri('test://one')] }) : undefined
        if (!modern) await client.subscribeResource({ uri: uri('test://one') })
        if (modern) assert.deepEqual(subscribed?.honoredFilter, { resourceSubscriptions: [uri('test://one')] })
        const { params } = await until('the update', async () => {
          await call('touch')
          return heard.find(({ method }) => method === 'notifications/resources/updated')
        })
        assert.equal(params?.['uri'], uri('test://one'))
        if (modern) await subscribed?.close()
        else await client.unsubscribeResource({ uri: uri('test://one') })
      }
    },
    {
      name: 'hears that the tools changed, and lists the new one',
      needs: 'grows',
      async run() {
        client.setNotificationHandler('notifications/tools/list_changed', hear)
        const listening = modern ? await client.listen({ toolsListChanged: true }) : undefined
        const known = (await toolNames()).includes(name('grown'))
        await call('grow')
        // What another visit has grown already grows no more.
        if (!known)
          await until('the change', () => heard.some(({ method }) => method === 'notifications/tools/list_changed'))
        await until('the new tool', async () => (await toolNames()).includes(name('grown')))
        await listening?.close()
      }
    },
    {
      name: 'answers when the server samples, asks for roots, and shows a form',
      needs: 'asks',
      async run() {
        client.setRequestHandler('sampling/createMessage', ({ params }) => ({
          role: 'assistant' as const,
          model: 'a model',
          content: { type: 'text' as const, text: `sampled with ${params.maxTokens}` }
        }))
        client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///here' }] }))
        let action: 'accept' | 'decline' = 'accept'
        client.setRequestHandler('elicitation/create', () =>
          action === 'accept' ? { action, content: { name: 'Ada' } } : { action }
        )
        assert.equal(textOf(await call('sample')), 'sampled with 77')
        assert.equal(textOf(await call('roots')), 'file:///here')
        assert.equal(textOf(await call('elicit')), 'accept Ada')
        action = 'decline'
        assert.equal(textOf(await call('elicit')), 'decline')
      }
    }
  ]
  return steps.filter(({ needs }) => needs === undefined || peer[needs])
}

const isError =
  (...codes: number[]) =>
  (error: unknown): boolean =>
    codes.includes((error as { code: number }).code)
