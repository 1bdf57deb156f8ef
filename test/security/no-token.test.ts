// Case 1: no credential at all.

import t from 'tap'
import { desk, metadataUrl, outcome, tenantWith } from '../kit/desk.ts'
import { hash } from 'node:crypto'

t.test('without a token the answer says where to get one, and no more', async (t) => {
  const room = desk(t, tenantWith({ keys: [{ name: 'ci', sha256: hash('sha256', 'secret'), scopes: ['mcp'] }], requiredScopes: ['mcp'] }))
  t.match(await room.present(undefined), {
    code: 'unauthenticated',
    data: {},
    headers: { 'WWW-Authenticate': `Bearer resource_metadata="${metadataUrl}", scope="mcp"` }
  })
  t.equal(outcome(await room.present('secret')), 'ci')
})
