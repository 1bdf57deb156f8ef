// What people of a tenant do, in every way in which they reach the gateway.

import { legacyClient } from '../kit/client.ts'
import { openEvents, type EventStream } from '../kit/events.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { isServerRequest, type Json } from '../kit/server-request.ts'
import {
  type Acts,
  type Act,
  type Told,
  anyNode,
  argumentsOf,
  ask,
  askAdmin,
  call,
  capabilities,
  closeStream,
  legacyMember,
  listKinds,
  memberOf,
  modern,
  modernMember,
  nameAt,
  say,
  told,
  urlAt,
  urlOf
} from './acting.ts'
import { openJudged } from './judged-stream.ts'
import type { House } from './world.ts'

export const openSession: Act = async (acting) => {
  const { known, person, chance } = acting
  closeStream(acting, 'stream')
  const revision = chance.pick(['2025-06-18', '2025-11-25'])
  const node = anyNode(acting)
  const { headers, initialized, end } = await legacyClient(urlAt(acting, node), person.key, revision, capabilities)
  known.session = { headers, end, node, requests: new Map() }
  return [told(initialized)]
}

export const ordinary: Acts = [
  [
    'list',
    async (acting) => {
      const { known, chance } = acting
      const method = chance.pick(listKinds)
      const answers = await ask(acting, method, {})
      known.cursor = /"nextCursor":"([^"]+)"/.exec(answers[0]?.text ?? '')?.[1] ?? known.cursor
      return answers
    }
  ],
  ['discover', async (acting) => [await modern(acting, 'server/discover', {})]],
  ['echo', (acting) => call(acting, nameAt(acting, 'echo'), argumentsOf(acting))],
  [
    'error',
    (acting) =>
      call(acting, nameAt(acting, acting.chance.pick(['rpcerror', 'fail'])), {
        message: `error of ${acting.house.canary}`,
        data: argumentsOf(acting)
      })
  ],
  [
    'notifications',
    (acting) =>
      call(acting, nameAt(acting, 'steps', 'legacy'), {
        steps: [{ progress: 1 }, { log: `log of ${acting.house.canary}` }, { progress: 2 }],
        push: acting.chance.chance(0.3)
      })
  ],
  ['touch', (acting) => call(acting, nameAt(acting, 'touch'), { uri: `test://${acting.house.canary}/one` })],
  [
    'prompt',
    (acting) =>
      ask(acting, 'prompts/get', {
        name: nameAt(acting, 'greet'),
        arguments: { who: acting.house.canary }
      })
  ],
  [
    'resource',
    (acting) => {
      const { house, chance } = acting
      const own = `test://${house.canary}/${chance.pick(['one', 'two', 'item/7'])}`
      return ask(acting, 'resources/read', { uri: `gatehouse://${memberOf(acting)}/${own}` })
    }
  ],
  [
    'completion',
    (acting) =>
      ask(acting, 'completion/complete', {
        ref: { type: 'ref/prompt', name: nameAt(acting, 'greet', 'legacy') },
        argument: { name: 'who', value: acting.house.canary }
      })
  ],
  [
    'subscription',
    async (acting) => {
      const { known, house } = acting
      const uri = `gatehouse://${legacyMember(acting)}/test://${house.canary}/one`
      if (known.session === undefined) return []
      const { session } = known
      const subscribed = await say(acting, session, { id: 's', method: 'resources/subscribe', params: { uri } })
      const touched = await call(acting, `${legacyMember(acting)}${acting.person.endpoint.separator}touch`, {
        uri: `test://${house.canary}/one`
      })
      return [subscribed, ...touched]
    }
  ],
  [
    'input of a session',
    async (acting) => {
      const { known, house } = acting
      if (known.session === undefined) return []
      const { session } = known
      const params = {
        name: nameAt(acting, 'steps', 'legacy'),
        arguments: { steps: [{ ask: [{ method: 'elicitation/create', params: elicited(house) }] }] }
      }
      const stream = await openEvents(urlOf(acting), {
        method: 'POST',
        headers: session.headers,
        body: JSON.stringify({ jsonrpc: '2.0', id: `in-${acting.chance.below(1e9)}`, method: 'tools/call', params })
      })
      if (stream.type !== 'text/event-stream; charset=utf-8') return [await textOf(stream)]
      const asked = (await stream.next(
        'a question or an answer',
        (message: Json) => isServerRequest(message) || 'error' in message || 'result' in message
      )) as Json
      if (isServerRequest(asked))
        await say(acting, session, {
          id: asked['id'],
          result: { action: 'accept', content: { name: house.canary } }
        })
      return [await textOf(stream)]
    }
  ],
  [
    'input of 2026-07-28',
    async (acting) => {
      const { known, house } = acting
      const params = { name: nameAt(acting, 'ask', 'modern'), arguments: argumentsOf(acting) }
      const first = await modern(acting, 'tools/call', params)
      const { requestState, inputRequests } = first.last()?.['result'] ?? {}
      if (requestState === undefined) return [first]
      known.requestState = requestState
      const inputResponses = Object.fromEntries(
        Object.keys(inputRequests ?? {}).map((key) => [key, { action: 'accept', content: { name: house.canary } }])
      )
      return [first, await modern(acting, 'tools/call', { ...params, requestState, inputResponses })]
    }
  ],
  [
    'task',
    async (acting) => {
      const { known } = acting
      const made = await modern(acting, 'tools/call', {
        name: nameAt(acting, 'task', 'modern'),
        arguments: argumentsOf(acting)
      })
      const taskId = made.last()?.['result']?.taskId as unknown
      if (typeof taskId !== 'string') return [made]
      known.taskId = taskId
      return [made, await modern(acting, 'tasks/get', { taskId })]
    }
  ],
  [
    'streams',
    async (acting) => {
      const { known, person, house, world } = acting
      const { session } = known
      const url = urlOf(acting)
      if (session !== undefined && known.stream === undefined) {
        const headers = { ...session.headers, accept: 'text/event-stream' }
        known.stream = await openJudged(world, house, url, { method: 'GET', headers })
        return [{ status: known.stream.status, head: '', text: '' }]
      }
      closeStream(acting, 'listen')
      const notifications = {
        toolsListChanged: true,
        resourceSubscriptions: [`gatehouse://${modernMember(acting)}/test://${house.canary}/one`]
      }
      known.listen = await openJudged(world, house, url, {
        method: 'POST',
        ...modernMessage('subscriptions/listen', { notifications }, { token: person.key })
      })
      return [{ status: known.listen.status, head: '', text: '' }]
    }
  ],
  [
    'HTTP+SSE',
    async (acting) => {
      const { chance, house, person } = acting
      const client = await httpSseClient(urlOf(acting), person.key, chance.pick(['2024-11-05', '2025-06-18']))
      await client.request(chance.pick(listKinds))
      await client.request('tools/call', { name: nameAt(acting, 'echo'), arguments: argumentsOf(acting) }, house.canary)
      client.close()
      await client.ended
      return [{ status: 200, head: JSON.stringify(client.response.headers), text: client.text() }]
    }
  ],
  ['admin API', (acting) => askAdmin(acting, acting.house)],
  ['session', openSession],
  [
    'end',
    async (acting) => {
      const { known } = acting
      const ended = await known.session?.end()
      delete known.session
      return ended === undefined ? [] : [told(ended)]
    }
  ]
]

const elicited = ({ canary }: House): Json => ({
  message: `question of ${canary}`,
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
})

async function textOf(stream: EventStream): Promise<Told> {
  await stream.ended
  return { status: stream.status, head: '', text: stream.text() }
}
