import fc from 'fast-check'
import t from 'tap'
import { challenge } from '../../src/auth/bearer.ts'
import { metadataUrl, placeAt, tenantWith, testAuthenticator } from '../kit/authenticator.ts'
import { GatewayError } from '../../src/protocol/messages.ts'

t.test('without a token the challenge names metadata and scopes, and no error', async (t) => {
  t.equal(
    challenge(metadataUrl, ['mcp', 'files:read']),
    `Bearer resource_metadata="${metadataUrl}", scope="mcp files:read"`
  )
  t.equal(challenge(metadataUrl, []), `Bearer resource_metadata="${metadataUrl}"`)
})

t.test('with a token it says what was wrong', async (t) => {
  t.equal(
    challenge(metadataUrl, [], 'invalid_token', 'expired'),
    `Bearer error="invalid_token", error_description="expired", resource_metadata="${metadataUrl}"`
  )
})

t.test('offline_access is never asked for', async (t) => {
  t.equal(challenge(metadataUrl, ['offline_access', 'mcp']), `Bearer resource_metadata="${metadataUrl}", scope="mcp"`)
})

t.test('nothing in it can end a quoted string or the header', async () => {
  const grammar = /^Bearer [a-z_]+="[\x20\x21\x23-\x5B\x5D-\x7E]*"(, [a-z_]+="[\x20\x21\x23-\x5B\x5D-\x7E]*")*$/
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string({ unit: 'binary' })), (text, scopes) => {
      return grammar.test(challenge(text, scopes, 'invalid_token', text))
    })
  )
})

t.test('each kind of refusal carries the challenge that RFC 6750 gives it', async (t) => {
  const tenant = tenantWith({ requiredScopes: ['mcp'] })
  const setup = testAuthenticator(t, tenant)
  const answer = async (rawHeaders: string[]) => {
    try {
      await setup.authenticator.authenticate(tenant, placeAt('https://x'), { rawHeaders, method: 'POST' })
    } catch (error) {
      if (error instanceof GatewayError)
        return [error.row.status, /error="(\w+)"/.exec(error.headers['WWW-Authenticate'] ?? 'none')?.[1]]
    }
    return 'no error'
  }
  t.same(await answer([]), [401, undefined])
  t.same(await answer(['Authorization', 'Basic YTpi']), [401, undefined], 'another scheme is no token')
  t.same(await answer(['Authorization', 'Bearer a b']), [401, 'invalid_token'])
  t.same(await answer(['Authorization', 'Bearer a']), [401, 'invalid_token'])
  t.same(await answer(['Authorization', 'Bearer a', 'Authorization', 'Bearer a']), [400, 'invalid_request'])
  t.same(setup.reasons(), ['no_token', 'scheme', 'syntax', 'unknown_key', 'duplicate'])
})
