// Part of the catalogue. With a credential: whether it is taken, and whether a session works.
// `{name}` stands for what was found.

import { at } from './misconfiguration.ts'

const [credential, initialize, discover, list, ping] = [
  at('credential'),
  at('initialize'),
  at('discover'),
  at('list'),
  at('ping')
]

export const useFaults = {
  key_unknown: credential(
    'host',
    'The API key is not one of this tenant: {said}',
    'Was it revoked? Is it whole, without quotes, and of this tenant? "gatehouse key list TENANT" names its keys, ' +
      '"key new" makes one.'
  ),
  admin_key: credential(
    'host',
    'This is an admin key (gha_…), and endpoints take API keys (gatehouse_…) and tokens.',
    'Give an API key of the tenant: "gatehouse key new" makes one. Admin keys are for the admin API only.'
  ),
  key_not_usable: credential(
    'host',
    'The API key is not taken: {said}',
    '"gatehouse key list TENANT" says until when, and for which endpoints, each key is; "key new" makes one.'
  ),
  key_without_scope: credential(
    'gateway',
    'The API key lacks the scope {scope}: {said}',
    'Give it the scope under auth.keys of the tenant, or take that out of requiredScopes.'
  ),
  authorization_not_passed: credential(
    'proxy',
    'The gateway did not get the Authorization header: {said}',
    'Let the proxy pass it on (nginx: proxy_set_header Authorization $http_authorization; Apache: CGIPassAuth ' +
      'or ProxyPass without AuthType).'
  ),
  token_opaque: credential(
    'identity provider',
    'The token is not a JWT, so the gateway cannot check it: {said}',
    'Have the provider issue JWT access tokens for this resource: most do as soon as the URL of the endpoint ' +
      'is registered as an API or audience. Or let the gateway ask the provider about it (introspection of ' +
      'auth.issuers).'
  ),
  token_not_active: credential(
    'host',
    'The token is not good any more, or never was: {said}',
    'Get a new one. If a new one is refused, too, its provider is another one than the gateway asks (introspection ' +
      'of auth.issuers).'
  ),
  proof_missing: credential(
    'gateway',
    'The tenant, or the token, wants a proof of DPoP, which few hosts can send: {said}',
    'Where the tenant requires it (auth.dpop: required), set "accepted", or use an API key. Where the token is ' +
      'bound to a key, have the provider issue this client tokens that are not. This command sends no proofs.'
  ),
  token_expired: credential(
    'host',
    'The token has expired, {ago} ago.',
    'Get a new one. A host that does not by itself has no refresh token: does the provider give one (offline_access)?'
  ),
  token_not_yet_valid: credential(
    'identity provider',
    'The token is good only in {ahead}.',
    'One of the two clocks is wrong: compare that of the provider with that of the gateway (NTP).'
  ),
  token_for_another: credential(
    'identity provider',
    'The token is for {audience}, and the endpoint is {resource}.',
    'Have the provider take the parameter "resource" (RFC 8707) or issue for this audience; or name the ' +
      'audience that it gives under auth.issuers (docs/config.md); or put auth.login before it.'
  ),
  token_of_other_issuer: credential(
    'gateway',
    'The token is of {issuer}, and this tenant takes those of {known}.',
    'Add the issuer to auth.issuers of the tenant, letter by letter, or sign in at the right one.'
  ),
  token_not_accepted: credential(
    'identity provider',
    'The gateway does not accept the token, though its claims fit: {said}',
    'What it says is to do. Of a signature: are the keys of the issuer (jwks_uri) reachable from the gateway, and ' +
      'those that sign? The log of the gateway says why, under request {request}.'
  ),
  scope_missing: credential(
    'identity provider',
    'The token lacks the scope {scope} (insufficient_scope).',
    'Have the provider grant it to this person and client, or take it out of requiredScopes of the tenant.'
  ),
  answer_changed: initialize(
    'proxy',
    'The answer to initialize is not JSON any more: {detail}',
    'Something on the way changes bodies (a filter, a scanner, a compressor). Switch it off for /t/.'
  ),
  session_not_passed: initialize(
    'proxy',
    'The answer to initialize comes without its Mcp-Session-Id header.',
    'Let the proxy pass response headers on, and requests with Mcp-Session-Id and MCP-Protocol-Version.'
  ),
  headers_changed: initialize(
    'proxy',
    'The gateway gets another Content-Type, Content-Encoding or Accept than was sent: {said}',
    'Let the proxy pass these headers on, unchanged, with every request to /t/.'
  ),
  initialize_refused: initialize('gateway', 'initialize is refused: {said}', 'What it says is to do (docs/errors.md).'),
  headers_not_passed: discover(
    'proxy',
    'A host of 2026-07-28 is refused: {said}',
    'Let the proxy pass Mcp-Method, Mcp-Name, Mcp-Param-* and MCP-Protocol-Version on, unchanged: the gateway ' +
      'compares them with the body.'
  ),
  discover_not_passed: discover(
    'proxy',
    'Something before the gateway answers a request of 2026-07-28 with {status}; those of a session pass.',
    'Allow the headers Mcp-Method, Mcp-Name and Mcp-Param-*, and the methods that they name: a filter may know only ' +
      'those of earlier revisions.'
  ),
  session_not_sent_on: list(
    'proxy',
    'The gateway gets requests without the Mcp-Session-Id that was sent: {said}',
    'Let the proxy pass Mcp-Session-Id and MCP-Protocol-Version on with every request to /t/.'
  ),
  request_not_passed: list(
    'proxy',
    '{method} is answered with {status} by something before the gateway: {said}',
    'Its log says why: a filter of bodies or headers, a limit of rate or size. Let /t/ pass: the gateway has limits ' +
      'of its own.'
  ),
  request_refused: list(
    'gateway',
    '{method} is refused: {said}',
    'What it says is to do (docs/errors.md); "gatehouse tail LOG --request {request}" has all of it.'
  ),
  no_tools: list(
    'gateway',
    'The endpoint offers this caller no tool at all.',
    'Its upstreams are away ("gatehouse status"), or rules show this caller none ("gatehouse explain", ' +
      '"gatehouse catalog").'
  ),
  stream_held_back: ping(
    'proxy',
    'The stream of the session (GET) does not get through within {seconds} s: something collects answers first.',
    'Switch buffering off for /t/ (nginx: proxy_buffering off; proxy_http_version 1.1;), and compression too.'
  ),
  method_refused: ping(
    'proxy',
    '{method} is answered with {status} by something before the gateway.',
    'Allow GET, POST, DELETE and OPTIONS for /t/.'
  ),
  body_too_large_for_proxy: ping(
    'proxy',
    'A message of {size} is refused with {status} by something before the gateway.',
    'Allow bodies as large as limits.bodyBytes (nginx: client_max_body_size).'
  )
}
