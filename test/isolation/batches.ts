// Batches of 2025-03-26: many requests in one body, each of which is an operation, and all answers in one. What a client
// of that revision knows of other tenants goes between its own requests.

import { eventsOf, jsonHeaders, legacyClient } from '../kit/client.ts'
import type { Json } from '../kit/server-request.ts'
import {
  type Act,
  type Acting,
  argumentsOf,
  idOf,
  listKinds,
  memberOf,
  anyNode,
  nameAt,
  urlAt,
  urlOf
} from './acting.ts'

/** At most 50 are taken. */
const messagesPerBatch = 40
/** Different ones of a session; each is sent again with other ids. */
const batchesPerSession = 10

type Request = readonly [kind: string, method: string, params: Json]

function requestOf(acting: Acting): Request {
  const { house, chance, victim } = acting
  const method = chance.pick(listKinds)
  const call = { name: nameAt(acting, chance.pick(['echo', 'echo', 'fail'])), arguments: argumentsOf(acting) }
  const uri = `gatehouse://${memberOf(acting)}/test://${house.canary}/${chance.pick(['one', 'two', 'item/7'])}`
  const prompt = { name: nameAt(acting, 'greet', 'legacy') }
  const argument = { name: 'who', value: house.canary }
  return chance.pick<Request>([
    ['list in a batch', method, {}],
    ['list in a batch', method, {}],
    ['call in a batch', 'tools/call', call],
    ['call in a batch', 'tools/call', call],
    ['resource in a batch', 'resources/read', { uri }],
    ['prompt in a batch', 'prompts/get', { ...prompt, arguments: { who: house.canary } }],
    ['completion in a batch', 'completion/complete', { ref: { ...prompt, type: 'ref/prompt' }, argument }],
    ['ping in a batch', 'ping', {}],
    ['foreign cursor in a batch', method, { cursor: victim.known.cursor ?? 'none' }]
  ])
}

const openSession = async (acting: Acting) => {
  const node = anyNode(acting)
  const { headers, end } = await legacyClient(urlAt(acting, node), acting.person.key, '2025-03-26')
  return {
    headers: { ...jsonHeaders, ...headers },
    end,
    node,
    requests: new Map(),
    kinds: new Map<string, readonly string[]>()
  }
}
export type BatchSession = Awaited<ReturnType<typeof openSession>>

export const batch: Act = async (acting) => {
  const { known, world, chance } = acting
  const session = (known.batches ??= await openSession(acting))
  const url = urlOf(acting, session)
  const which = String(chance.below(batchesPerSession))
  const place = `${url} ${which}`
  const heard = await world.wire.askAgain(url, session.requests, which, () => {
    const requests = Array.from({ length: messagesPerBatch }, () => requestOf(acting))
    const messages = requests.map(([, method, params], at) => ({
      jsonrpc: '2.0',
      id: idOf(acting, at),
      method,
      params
    }))
    session.kinds.set(
      place,
      requests.map(([kind]) => kind)
    )
    return { headers: session.headers, body: JSON.stringify(messages) }
  })
  // It has ended, as with its key.
  if (heard.status === 404) delete known.batches
  if (heard.status !== 200) return [heard]
  // Where an answer takes long it comes as events, whatever is in them.
  const answers = (heard.text.startsWith('[') ? JSON.parse(heard.text) : eventsOf(heard.text).flat()) as Json[]
  const answered = new Map(answers.map(({ id, result }) => [numberIn(String(id)), result !== undefined]))
  const parts = (session.kinds.get(place) ?? []).map((kind, at) => ({ kind, isOk: answered.get(at) === true }))
  return [{ ...heard, parts }]
}

/** Which message of its batch an answer is to. */
const numberIn = (id: string): number => Number(/-(\d+)-\d+$/.exec(id)?.[1])
