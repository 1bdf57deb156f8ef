import t from 'tap'
import { metadataUrlOf, resourceMetadata } from '../../src/auth/bearer.ts'
import { metadataUrl, resource, tenantWith, trust } from '../kit/authenticator.ts'

t.test('the metadata name the resource, its issuers and its scopes', async (t) => {
  const { auth } = tenantWith({
    issuers: [trust('https://idp.example.com'), trust('https://other.example.com/')],
    requiredScopes: ['mcp', 'offline_access']
  })
  t.same(resourceMetadata(resource, auth, 'Acme'), {
    resource,
    authorization_servers: ['https://idp.example.com', 'https://other.example.com/'],
    scopes_supported: ['mcp'],
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: ['ES256', 'ES384', 'Ed25519', 'EdDSA', 'PS256', 'RS256'],
    resource_name: 'Acme'
  })
})

t.test('what there is none of is left out', async (t) => {
  const document = resourceMetadata(resource, tenantWith({ issuers: [trust('https://idp.example.com')] }).auth)
  t.same(Object.keys(document), [
    'resource',
    'authorization_servers',
    'bearer_methods_supported',
    'dpop_signing_alg_values_supported'
  ])
})

t.test('the well-known part goes before the path', async (t) => {
  t.equal(metadataUrlOf(resource), metadataUrl)
  t.equal(metadataUrlOf('https://mcp.example.com'), 'https://mcp.example.com/.well-known/oauth-protected-resource')
  t.equal(
    metadataUrlOf('http://127.0.0.1:8080/t/demo/files/mcp'),
    'http://127.0.0.1:8080/.well-known/oauth-protected-resource/t/demo/files/mcp'
  )
})
