// Part of the catalogue. While a host finds the login and signs somebody in.
// `{name}` stands for what was found.

import { at } from './misconfiguration.ts'

const [metadata, discovery, registration, authorization, token] = [
  at('metadata'),
  at('discovery'),
  at('registration'),
  at('authorization'),
  at('token')
]

export const loginFaults = {
  public_url_differs: metadata(
    'gateway',
    'The gateway calls itself {announced}, and hosts reach it as {reached}.',
    'Set publicUrl to {reached}: tokens are issued for the URL that it names, and hosts refuse one that differs.'
  ),
  metadata_not_passed: metadata(
    'proxy',
    '{url} is answered with {status} by something before the gateway.',
    'Pass /.well-known/oauth-protected-resource/ on to the gateway as it is.'
  ),
  metadata_changed: metadata(
    'proxy',
    'The metadata at {url} is not what the gateway sends: {detail}',
    'Something before the gateway answers in its place, or changes it. Pass /.well-known/oauth-protected-resource/ ' +
      'on to the gateway as it is.'
  ),
  resource_differs: metadata(
    'host',
    'The metadata is for {resource}, and the URL is {url}.',
    'Use the URL of the metadata in the host, letter by letter: tokens are for that one.'
  ),
  issuer_unreachable: discovery(
    'identity provider',
    'The authorization server {issuer} cannot be reached: {reason}.',
    'Hosts have to reach it from where they run, with a certificate that they know. Correct auth.issuers, or ' +
      'open the way to it.'
  ),
  issuer_without_metadata: discovery(
    'identity provider',
    '{issuer} has neither OAuth nor OpenID metadata: {tried}.',
    'Correct the issuer in auth.issuers: it is the value of "issuer" in the metadata of the provider, with its path.'
  ),
  issuer_differs: discovery(
    'gateway',
    'The metadata of {issuer} says that the issuer is {said}.',
    'Write {said} in auth.issuers, letter by letter: a slash at the end counts.'
  ),
  issuer_incomplete: discovery(
    'identity provider',
    'The metadata of {issuer} has no {missing}.',
    'It cannot let people in. Is it the right server? Or put auth.login before it (docs/login.md).'
  ),
  issuer_url_unsafe: discovery(
    'identity provider',
    'The metadata of {issuer} names a {name} that is neither https nor http on loopback: {url}',
    'Codes and tokens would travel unprotected, or nowhere. Correct its public URL there.'
  ),
  issuer_without_pkce: discovery(
    'identity provider',
    'The metadata of {issuer} does not name S256 under code_challenge_methods_supported.',
    'MCP hosts refuse a server that does not. Switch PKCE on there, or put auth.login before it (docs/login.md).'
  ),
  no_registration: discovery(
    'identity provider',
    '{issuer} lets hosts neither register (no registration_endpoint) nor use metadata documents as client ids.',
    'Switch dynamic registration on there; or register the host by hand and give it the client id (here: ' +
      '--client-id); or put auth.login before it (docs/login.md).'
  ),
  registration_refused: registration(
    'identity provider',
    '{issuer} refuses to register a host: {said}',
    'Allow anonymous registration for the redirect URIs of hosts (http://127.0.0.1 with any port, ' +
      'https://claude.ai/…), or put auth.login before it (docs/login.md).'
  ),
  client_unknown: authorization(
    'identity provider',
    'The authorization server shows an error page instead of a login ({status}): {said}',
    'The client id or its redirect URI {redirect} is not registered there. Register both; loopback addresses ' +
      'with any port.'
  ),
  resource_refused: authorization(
    'identity provider',
    'The authorization server does not know the resource {resource} (invalid_target).',
    'Register the URL of the endpoint as an API, audience or resource there, or put auth.login before it.'
  ),
  scope_refused: authorization(
    'gateway',
    'The authorization server does not know the scope "{scope}" (invalid_scope).',
    'Add the scope there, or correct requiredScopes of the tenant.'
  ),
  device_not_offered: authorization(
    'identity provider',
    '{issuer} offers no login by device (no device_authorization_endpoint, RFC 8628).',
    'Switch it on there, if hosts without a browser are to sign in; or use --login on a machine with a browser.'
  ),
  device_refused: authorization(
    'identity provider',
    '{issuer} begins no login by device for this client: {said}',
    'Allow the client the grant urn:ietf:params:oauth:grant-type:device_code there, or use --login.'
  ),
  login_refused: authorization(
    'identity provider',
    'The login was not allowed: {said}',
    'Sign in as somebody who may use this application, and allow the host. Otherwise assign the person to it there.'
  ),
  login_not_finished: authorization(
    'host',
    'Nobody signed in within {seconds} s.',
    'Open the URL that is printed in a browser and sign in: with --login in one of this machine.'
  ),
  token_refused: token(
    'identity provider',
    'The token endpoint refuses the code: {said}',
    'Is the client a public one (token_endpoint_auth_method none), with the grant authorization_code (with --device: ' +
      'urn:ietf:params:oauth:grant-type:device_code)?'
  )
}
