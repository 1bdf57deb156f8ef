import t from 'tap'
import { keyDigest } from '../../src/config/auth/key-rules.ts'
import { base, goodKey, refusals, withValue } from './kit.ts'

const auth = ['tenants', 'acme', 'auth']
const issuer = [...auth, 'issuers', 0]
const directory = '11111111-2222-3333-4444-555555555555'
const entra = `https://login.microsoftonline.com/${directory}/v2.0`
const template = 'https://login.microsoftonline.com/{tenantid}/v2.0'
const path = 'tenants.acme.auth.issuers[0]'

refusals(t, [
  {
    name: 'an issuer for all organisations of a provider is refused without a list of those that may call',
    steps: issuer,
    bad: { issuer: template },
    good: { issuer: template, placeholderValues: [directory] },
    path: `${path}.issuer`,
    message: /all of them would be let in/
  },
  {
    name: 'a list of organisations without a place for them is refused',
    steps: issuer,
    bad: { issuer: entra, placeholderValues: [directory] },
    good: { issuer: entra },
    path: `${path}.placeholderValues`,
    message: /no placeholder/
  },
  {
    name: 'two placeholders are refused',
    steps: [...issuer, 'issuer'],
    bad: 'https://example.com/{host}/{tenantid}',
    good: 'https://a.example.com/{tenantid}',
    start: withValue([...issuer, 'placeholderValues'], ['a']),
    message: /more than one/
  },
  {
    name: 'a placeholder in the name of a host is refused',
    steps: [...issuer, 'issuer'],
    bad: 'https://{organisation}.example.com/a',
    good: 'https://example.com/a/{organisation}',
    start: withValue([...issuer, 'placeholderValues'], ['a']),
    message: /name of a host/
  },
  {
    name: 'an organisation that is no part of a URL is refused',
    steps: [...issuer, 'placeholderValues', 0],
    bad: 'a/../b',
    good: 'a.b-c',
    start: withValue([...issuer, 'issuer'], template),
    message: /one part of a URL/
  },
  {
    name: 'an issuer that a placeholder makes as well is refused',
    steps: [...auth, 'issuers', 1],
    bad: { issuer: entra },
    good: { issuer: 'https://idp.example.com' },
    path: 'tenants.acme.auth.issuers[1].issuer',
    message: /same issuer as entry 1/,
    start: withValue(issuer, { issuer: template, placeholderValues: [directory] })
  },
  {
    name: 'a value that makes a shared issuer of Entra is refused, too',
    steps: [...issuer, 'placeholderValues'],
    bad: [directory, 'common'],
    good: [directory],
    start: withValue(issuer, { provider: 'entra', issuer: template, audiences: [directory] }),
    path: `${path}.placeholderValues[1]`,
    message: /makes https:\/\/login\.microsoftonline\.com\/common\/v2\.0, which is no issuer of Microsoft Entra ID/
  },
  {
    name: 'a shared issuer of Entra is refused, which no token has',
    steps: [...issuer, 'issuer'],
    bad: 'https://login.microsoftonline.com/common/v2.0',
    good: entra,
    start: withValue(issuer, { provider: 'entra', audiences: [directory] }),
    message: /no issuer of Microsoft Entra ID/
  },
  {
    name: 'Entra is refused without the name that its tokens have for the gateway',
    steps: [...issuer, 'audiences'],
    bad: [],
    good: [directory],
    start: withValue(issuer, { provider: 'entra', issuer: entra }),
    path,
    message: /never name the URL of an endpoint/
  },
  {
    name: 'or with that of an endpoint',
    steps: ['tenants', 'acme', 'endpoints', 'files', 'audiences'],
    bad: [],
    good: [directory],
    start: withValue(issuer, { provider: 'entra', issuer: entra }),
    path,
    message: /never name the URL of an endpoint/
  },
  {
    name: 'the org authorization server of Okta is refused',
    steps: [...issuer, 'issuer'],
    bad: 'https://acme.okta.com',
    good: 'https://acme.okta.com/oauth2/default',
    start: withValue(issuer, { provider: 'okta' }),
    message: /no issuer of Okta/
  },
  {
    name: 'an authorization server with a placeholder that its issuer does not have is refused',
    steps: [...issuer, 'authorizationServer'],
    bad: 'https://login.microsoftonline.com/{tenant}/v2.0',
    good: template,
    start: withValue(issuer, { issuer: template, placeholderValues: [directory] }),
    path: `${path}.authorizationServer`,
    message: /a placeholder that its issuer does not have/
  },
  {
    name: 'an authorization server with a placeholder in the name of a host is refused',
    steps: [...issuer, 'authorizationServer'],
    bad: 'https://{tenantid}.example.com',
    good: 'https://login.example.com',
    start: withValue(issuer, { issuer: template, placeholderValues: [directory] }),
    path: `${path}.authorizationServer`,
    message: /in the name of a host/
  },
  {
    name: 'Google is refused as an issuer',
    steps: [...issuer, 'provider'],
    bad: 'google',
    good: 'generic',
    start: withValue(issuer, { issuer: 'https://accounts.google.com' }),
    message: /cannot be an issuer/
  },
  {
    name: 'a second issuer that is asked about opaque tokens is refused: it would get those of the first',
    steps: [...auth, 'issuers', 1],
    bad: { issuer: 'https://b.example', introspection: { clientId: 'a', clientSecret: 'b' } },
    good: { issuer: 'https://b.example' },
    path: 'tenants.acme.auth.issuers[1].introspection',
    message: /opaque tokens of one issuer to another/,
    start: withValue([...issuer, 'introspection'], { clientId: 'a', clientSecret: 'b' })
  },
  {
    name: 'a key for an endpoint that is not there is refused',
    steps: [...auth, 'keys', 0, 'endpoints'],
    bad: ['file'],
    good: ['files'],
    path: 'tenants.acme.auth.keys[0].endpoints[0]',
    message: /does not have/
  },
  {
    name: 'a key that expires at no time is refused',
    steps: [...auth, 'keys', 0, 'expires'],
    bad: '2027-02-31x',
    good: '2027-01-31',
    message: /no time/
  },
  {
    name: 'a key before it needs an end',
    steps: [...auth, 'keys', 0, 'previousUntil'],
    bad: undefined,
    good: '2027-01-31T09:00:00Z',
    path: 'tenants.acme.auth.keys[0]',
    message: /only one of previousSha256/,
    start: withValue([...auth, 'keys', 0, 'previousSha256'], 'ab'.repeat(32))
  },
  {
    name: 'a key before that is the key of somebody is refused',
    steps: [...auth, 'keys', 0, 'previousSha256'],
    bad: keyDigest({ key: goodKey }),
    good: 'ab'.repeat(32),
    message: /the key of entry 1/,
    start: withValue([...auth, 'keys', 0, 'previousUntil'], '2027-01-31')
  },
  {
    name: 'a provider that nobody knows is refused',
    steps: [...issuer, 'provider'],
    bad: 'okto',
    good: 'generic',
    start: base(),
    message: /one of entra, okta/
  }
])
