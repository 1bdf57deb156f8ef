// What an upstream is shown of who calls: what contradicts itself, or cannot be kept, is refused with what to do.

import t from 'tap'
import { base, refusals, withValue } from './kit.ts'

const tickets = ['tenants', 'acme', 'upstreams', 'tickets']
const files = ['tenants', 'acme', 'upstreams', 'files']
const at = 'tenants.acme.upstreams'
const vault = { keys: [{ id: '1', key: Buffer.alloc(32, 1).toString('base64') }] }
const kept = () => ({ ...base(), vault })
const exchange = { type: 'tokenExchange', issuer: 'https://idp.example.com', clientId: 'c', clientSecret: 'abc' }
const robot = { type: 'clientCredentials', clientId: 'robot', clientSecret: 'abc' }

refusals(t, [
  {
    name: 'accounts and secrets of people without a vault to keep them in are refused',
    steps: ['vault'],
    bad: undefined,
    good: vault,
    start: withValue([...tickets, 'auth'], { type: 'user' }),
    path: `${at}.tickets.auth`,
    message: /there is no vault/
  },
  {
    name: 'a key of the vault that is no key, or two at once, is refused',
    steps: ['vault'],
    bad: { keys: [{ ...vault.keys[0], awsKms: { keyId: 'alias/gatehouse' } }] },
    good: { keys: [...vault.keys, { id: '2', awsKms: { keyId: 'alias/gatehouse', region: 'eu-central-1' } }] },
    start: kept(),
    path: 'vault.keys[0]',
    message: /needs one of key and awsKms/
  },
  {
    name: 'two keys of the vault under one id are refused',
    steps: ['vault'],
    bad: { keys: [...vault.keys, ...vault.keys] },
    good: vault,
    start: kept(),
    path: 'vault.keys[1].id',
    message: /is the same id/
  },
  {
    name: 'a header that auth writes too is refused, however it is spelt',
    steps: [...tickets, 'headers'],
    bad: { 'x-api-KEY': 'abc' },
    good: { 'X-Other': 'abc' },
    start: withValue([...tickets, 'auth'], { type: 'userSecret', header: 'X-Api-Key' }, kept()),
    path: `${at}.tickets.headers.x-api-KEY`,
    message: /is what auth writes/
  },
  {
    name: 'a variable from which programs take what they run is refused',
    steps: [...files, 'auth'],
    bad: { type: 'userSecret', env: 'NODE_OPTIONS' },
    good: { type: 'userSecret', env: 'NOTES_TOKEN' },
    start: kept(),
    path: `${at}.files.auth.env`,
    message: /could run anything/
  },
  {
    name: 'an assertion that says what the gateway itself writes is refused',
    steps: [...tickets, 'auth', 'claims'],
    bad: ['email', 'sub'],
    good: ['email'],
    start: withValue([...tickets, 'auth'], { type: 'signed' }, kept()),
    path: `${at}.tickets.auth.claims[1]`,
    message: /that the gateway writes itself/
  },
  {
    name: 'a provider without an application that is registered there is refused',
    steps: [...tickets, 'auth'],
    bad: { type: 'user', provider: 'github' },
    good: { type: 'user', provider: 'github', clientId: 'app', clientSecret: 'abc' },
    start: kept(),
    path: `${at}.tickets.auth`,
    message: /no clientId and clientSecret/
  },
  {
    name: 'exchanging tokens at an issuer that callers have no tokens of is refused',
    steps: [...tickets, 'auth', 'issuer'],
    bad: 'https://other.example.com',
    good: 'https://idp.example.com',
    start: withValue(
      [...tickets, 'auth'],
      { type: 'tokenExchange', clientId: 'gateway', clientSecret: 'abc' },
      withValue(['tenants', 'acme', 'auth', 'issuers'], [{ issuer: 'https://idp.example.com' }])
    ),
    path: `${at}.tickets.auth.issuer`,
    message: /is no issuer of this tenant/
  },
  {
    name: 'signing without a vault for its keys is refused',
    steps: ['vault'],
    bad: undefined,
    good: vault,
    start: withValue([...tickets, 'auth'], { type: 'signed' }),
    path: `${at}.tickets.auth`,
    message: /keeps what it signs with in the store, and there is no vault/
  },
  {
    name: 'exchanged tokens that processes share without a vault to seal them with are refused',
    steps: ['vault'],
    bad: undefined,
    good: vault,
    start: withValue(['store'], 'redis://localhost', withValue([...tickets, 'auth'], exchange)),
    path: `${at}.tickets.auth`,
    message: /keeps what tokens were exchanged for in the store, and there is no vault/
  },
  {
    name: 'and are no matter of a vault where one process has the store to itself',
    steps: ['store'],
    bad: 'redis://localhost',
    good: 'memory:',
    start: withValue([...tickets, 'auth'], exchange),
    path: `${at}.tickets.auth`,
    message: /there is no vault/
  },
  {
    name: 'client credentials without a secret and a key are refused',
    steps: [...tickets, 'auth'],
    bad: { type: 'clientCredentials', clientId: 'robot' },
    good: robot,
    start: base(),
    path: `${at}.tickets.auth`,
    message: /neither clientSecret nor privateKey/
  },
  {
    name: 'one of two endpoints of a server without metadata is refused',
    steps: [...tickets, 'auth', 'tokenUrl'],
    bad: undefined,
    good: 'https://idp.example.com/token',
    start: withValue(
      [...tickets, 'auth'],
      { type: 'user', clientId: 'gatehouse', authorizationUrl: 'https://idp.example.com/authorize' },
      kept()
    ),
    path: `${at}.tickets.auth`,
    message: /only one of authorizationUrl and tokenUrl/
  },
  {
    name: 'where accounts are given back is in the metadata, where there are any',
    steps: [...tickets, 'auth', 'revocationUrl'],
    bad: 'https://idp.example.com/revoke',
    good: undefined,
    start: withValue([...tickets, 'auth'], { type: 'user' }, kept()),
    path: `${at}.tickets.auth.revocationUrl`,
    message: /is in the metadata of the authorization server/
  },
  {
    name: 'and is https',
    steps: [...tickets, 'auth', 'revocationUrl'],
    bad: 'http://github.example.com/api/v3/applications/{client_id}/grant',
    good: 'https://github.example.com/api/v3/applications/{client_id}/grant',
    start: withValue(
      [...tickets, 'auth'],
      { type: 'user', provider: 'github', clientId: 'gatehouse', clientSecret: 'of-the-application' },
      kept()
    ),
    path: `${at}.tickets.auth.revocationUrl`,
    message: /is plain http/
  }
])
