// The part of the tour where the server asks: sampling, elicitation in both modes, roots. Each tool gives back what it
// was answered.

import assert from 'node:assert/strict'
import type { Revision } from '../../../src/protocol/messages.ts'
import { until } from '../../kit/until.ts'
import type { Types } from './sdks.ts'
import { type Result, type Step, textOf, type Tour } from './tour-step.ts'

type Call = (tool: string, args?: Record<string, unknown>) => Promise<Result>

/** @param both the older of the two revisions */
export function asking({ client }: Tour, call: Call, both: Revision, types: typeof Types): Step[] {
  const steps: Array<Step & { readonly since: Revision }> = [
    {
      name: 'answers when the server samples',
      since: '2024-11-05',
      async run() {
        client.setRequestHandler(types.CreateMessageRequestSchema, async ({ params }) => ({
          role: 'assistant',
          model: 'a model',
          content: { type: 'text', text: `sampled with ${params.maxTokens}` }
        }))
        assert.equal(textOf(await call('sample')), 'sampled with 77')
      }
    },
    {
      name: 'shows its roots, and tells when they change',
      since: '2024-11-05',
      async run() {
        let path = 'before'
        client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [{ uri: `file:///${path}` }] }))
        assert.equal(textOf(await call('roots')), 'file:///before')
        path = 'after'
        const told = Number(textOf(await call('rootsChanges')))
        await client.sendRootsListChanged()
        await until('the server is told', async () => Number(textOf(await call('rootsChanges'))) === told + 1)
        assert.equal(textOf(await call('roots')), 'file:///after')
      }
    },
    {
      name: 'fills in a form, and declines one',
      since: '2025-06-18',
      async run() {
        let action: 'accept' | 'decline' = 'accept'
        client.setRequestHandler(types.ElicitRequestSchema, async () =>
          action === 'accept' ? { action, content: { name: 'Ada' } } : { action }
        )
        assert.equal(textOf(await call('elicit')), 'accept Ada')
        action = 'decline'
        assert.equal(textOf(await call('elicit')), 'decline')
      }
    },
    {
      name: 'is sent to a page, and hears when the user is done there',
      since: '2025-11-25',
      async run() {
        const ids: string[] = []
        client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
          assert.equal(params.mode, 'url')
          assert.equal(params.url, 'https://example.com/sign')
          ids.push(params.elicitationId)
          return { action: 'accept' }
        })
        const done: string[] = []
        client.setNotificationHandler(types.ElicitationCompleteNotificationSchema, async ({ params }) => {
          done.push(params.elicitationId)
        })
        assert.equal(textOf(await call('link')), 'accept')
        await until('the page is done', () => done.length > 0)
        assert.deepEqual(done, ids)
      }
    }
  ]
  return steps.filter(({ since }) => since <= both)
}
