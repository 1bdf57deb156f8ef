// What attackers try with what they know of people of another tenant.

import { setTimeout as wait } from 'node:timers/promises'
import { open } from '../kit/client.ts'
import {
  type Acts,
  argumentsOf,
  ask,
  askAdmin,
  closeStream,
  listKinds,
  modern,
  nameAt,
  say,
  sayModern,
  urlOf
} from './acting.ts'

/** What somebody else has and nobody should be able to use: never a text that holds a canary by itself. */
export const attacks: Acts = [
  [
    'foreign session',
    async (acting) => {
      const { victim, person } = acting
      const { session } = victim.known
      if (session === undefined) return []
      const headers = { ...session.headers, authorization: `Bearer ${person.key}` }
      const at = acting.chance.pick([
        urlOf(acting),
        acting.world.url(acting.chance.below(acting.world.rig.nodes.length), victim.house, victim.person.endpoint)
      ])
      const message = { id: 1, method: acting.chance.pick(['tools/list', 'ping']) }
      return [
        await say(acting, { headers }, message, at),
        await acting.world.wire.ask(at, { method: 'DELETE', headers })
      ]
    }
  ],
  [
    'foreign endpoint',
    async (acting) => [
      await sayModern(
        acting,
        acting.world.url(
          acting.chance.below(acting.world.rig.nodes.length),
          acting.victim.house,
          acting.victim.person.endpoint
        ),
        'tools/list',
        {}
      )
    ]
  ],
  ['foreign admin API', (acting) => askAdmin(acting, acting.victim.house)],
  [
    'foreign cursor',
    (acting) => ask(acting, acting.chance.pick(listKinds), { cursor: acting.victim.known.cursor ?? 'none' })
  ],
  [
    'foreign request state',
    async (acting) => [
      await modern(acting, 'tools/call', {
        name: nameAt(acting, 'ask', 'modern'),
        arguments: argumentsOf(acting),
        requestState: acting.victim.known.requestState ?? 'none',
        inputResponses: {}
      })
    ]
  ],
  [
    'foreign task',
    async (acting) => [await modern(acting, 'tasks/get', { taskId: acting.victim.known.taskId ?? 'none' })]
  ],
  [
    'foreign event',
    async (acting) => {
      const { victim, chance } = acting
      const { session } = acting.known
      const { eventId, stream } = victim.known
      if (session === undefined) return []
      const headers = {
        ...session.headers,
        accept: 'text/event-stream',
        'last-event-id': stream?.lastId() ?? eventId ?? 'none'
      }
      const stop = new AbortController()
      const response = await open(urlOf(acting), { headers, signal: stop.signal })
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('error', () => {})
      await wait(chance.below(5))
      stop.abort()
      // It took the stream of this session over.
      closeStream(acting, 'stream')
      return [{ status: response.statusCode ?? 0, head: JSON.stringify(response.headers), text }]
    }
  ],
  [
    'foreign answer',
    async (acting) => {
      const { known } = acting
      if (known.session === undefined) return []
      return [
        await say(acting, known.session, {
          id: acting.chance.below(20),
          result: { action: 'accept', content: {} }
        })
      ]
    }
  ]
]
