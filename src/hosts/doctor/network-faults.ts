// Part of the catalogue. On the way to the gateway, and before anybody has to sign in.
// `{name}` stands for what was found.

import { at } from './misconfiguration.ts'

const [url, dns, tls, host, challenge] = [at('url'), at('dns'), at('tls'), at('host'), at('challenge')]

export const networkFaults = {
  url_invalid: url('host', '"{url}" is no URL of HTTP.', 'Write it as https://HOST/t/TENANT/mcp.'),
  url_without_endpoint: url(
    'host',
    '{url} names the gateway and none of its endpoints.',
    'Add the path of an endpoint: /t/TENANT/mcp, or /t/TENANT/ENDPOINT/mcp.'
  ),
  dns_unknown: dns(
    'network',
    'The name {hostname} is not known ({code}).',
    'Correct the host of the URL, or add a DNS record for it. A name of a private network is known inside of it only.'
  ),
  connection_refused: tls(
    'gateway',
    'Nothing listens on {address} ({code}).',
    'Start the gateway or the proxy there, publish the port of its container, or correct the port of the URL. ' +
      'A gateway that listens on 127.0.0.1 is reached from its own machine only: listen.host.'
  ),
  no_answer: tls(
    'network',
    '{address} takes connections and answers nothing within {seconds} s.',
    'Something else than the gateway listens there, or a firewall or proxy swallows what is sent. Try from ' +
      'the machine of the gateway itself.'
  ),
  not_reachable: tls(
    'network',
    '{address} cannot be reached ({code}): nothing takes the connection.',
    'Is the address right, and does a firewall or security group let this port through? An address of a private ' +
      'network is reached from inside of it only.'
  ),
  connection_cut: tls(
    'proxy',
    '{address} takes the connection and ends it before its answer is whole ({code}).',
    'Something before the gateway drops it, or what answers crashes: the log of the proxy says which. Try from the ' +
      'machine of the gateway itself.'
  ),
  not_http: tls(
    'host',
    'What listens on {address} speaks neither HTTP nor TLS ({code}).',
    'Correct the port of the URL: it is that of another service.'
  ),
  tls_expired: tls(
    'proxy',
    'The certificate of {hostname} has expired ({code}).',
    'Renew it, and have the proxy read it anew.'
  ),
  tls_not_yet_valid: tls(
    'proxy',
    'The certificate of {hostname} is not valid yet ({code}).',
    'Compare the clock of this machine with that of others (NTP), then the first day of the certificate.'
  ),
  tls_refused: tls(
    'proxy',
    '{address} takes the connection and refuses its TLS ({code}).',
    'The proxy has no site or certificate for {hostname} (SNI), or takes none of the versions of TLS that hosts ' +
      'speak (1.2 and 1.3).'
  ),
  client_certificate_wanted: tls(
    'proxy',
    '{address} wants a certificate of the client ({code}).',
    'Switch mutual TLS off for /t/ and /.well-known/: hosts have no certificate of their own, and the gateway checks ' +
      'every request itself.'
  ),
  tls_wrong_name: tls(
    'proxy',
    'The certificate is not for {hostname}: {detail}',
    'Get one for this name, or use the name of the certificate in the URL and in publicUrl.'
  ),
  tls_unknown_ca: tls(
    'proxy',
    'The certificate of {hostname} is self-signed, or of an authority that is not known here ({code}).',
    'Use a certificate of a public authority; or give hosts the authority of the company ' +
      '(NODE_EXTRA_CA_CERTS), and this command --ca. Hosts in the cloud (ChatGPT, Claude) know public ones ' +
      'only.'
  ),
  tls_incomplete_chain: tls(
    'proxy',
    'The proxy sends the certificate of {hostname} without the intermediate one that signed it ({code}).',
    'Configure the full chain (fullchain.pem). Browsers often have the missing one, and programs do not.'
  ),
  tls_at_plain_port: tls(
    'host',
    '{address} speaks HTTP without TLS, and the URL says https.',
    'Correct the port, put a proxy that speaks TLS before the gateway, or write http:// (on one machine only).'
  ),
  plain_at_tls_port: tls('host', '{address} speaks TLS, and the URL says http.', 'Write https:// in the URL.'),
  redirects: host(
    'host',
    'A POST to {url} is answered by a redirect to {location}.',
    'Give hosts the final URL: a POST loses its body or its Authorization header on the way, and most follow none.'
  ),
  login_page: host(
    'proxy',
    'A web page for people comes instead of an answer of MCP: {detail}',
    'Let the path /t/ and /.well-known/ pass without the login of the proxy: the gateway checks every request ' +
      'itself, and hosts cannot fill in forms.'
  ),
  own_authentication: host(
    'proxy',
    'The proxy wants a login of its own ({detail}) before anything reaches the gateway.',
    'Switch it off for /t/ and /.well-known/: hosts have one Authorization header, and that is for the gateway.'
  ),
  bad_gateway: host(
    'proxy',
    'The proxy answers {status}: it does not reach the gateway.',
    'Is the gateway running, and is the upstream address of the proxy right? In containers that is the name ' +
      'of the service, not localhost.'
  ),
  refused_on_the_way: host(
    'proxy',
    'Something before the gateway refuses with HTTP {status}: {said}',
    'Its log says why: a limit of rate or size, a filter, a list of addresses. Let /t/ and /.well-known/ pass: the ' +
      'gateway has limits of its own.'
  ),
  path_not_passed: host(
    'proxy',
    'HTTP {status} comes from something before the gateway, which does not pass {path} on.',
    'Pass /t/, /.well-known/ and, with auth.login, /login/ on, unchanged: no prefix may be cut off or added.'
  ),
  not_mcp: host(
    'host',
    '{url} answers HTTP {status} with {type}, and not as this gateway does.',
    'Correct the URL: it leads to something else. Endpoints are /t/TENANT/mcp.'
  ),
  host_refused: host(
    'gateway',
    'The gateway does not answer to the name {host} (forbidden_host).',
    'Set publicUrl to the URL that people use, and have the proxy pass the Host header on (nginx: ' +
      'proxy_set_header Host $host).'
  ),
  origin_refused: host(
    'gateway',
    'Web pages of {origin} may not call this tenant (forbidden_origin).',
    'Add "{origin}" to origins of the tenant.'
  ),
  endpoint_unknown: host(
    'host',
    'The gateway has no endpoint at {path} (not_found).',
    'Correct tenant and endpoint in the URL; "gatehouse tenant list" and "gatehouse endpoint list TENANT" name all.'
  ),
  tenant_stopped: host(
    'gateway',
    'A kill switch stops this tenant or this caller (stopped).',
    '"gatehouse kill list TENANT" says what is stopped, and "gatehouse kill … --undo" takes it back.'
  ),
  gateway_busy: host(
    'gateway',
    'The gateway refuses for now: {said}',
    'Wait as long as Retry-After says. If it stays so: docs/reliability.md for more processes, docs/limits.md ' +
      'for limits.'
  ),
  challenge_missing: challenge(
    'proxy',
    'The 401 comes without its WWW-Authenticate header, by which hosts find the login.',
    'Let the proxy pass response headers on as they are (nginx: no proxy_hide_header, no error_page or ' +
      'proxy_intercept_errors for 401).'
  ),
  challenge_changed: challenge(
    'proxy',
    'The challenge of the 401 leads to "{url}", which is no URL: hosts cannot follow it.',
    'Let the proxy pass WWW-Authenticate on as it is: something rewrites URLs in it (nginx: proxy_redirect, ' +
      'sub_filter; Apache: Header edit).'
  ),
  key_needed: challenge(
    'host',
    'This tenant takes API keys only, and none was given.',
    'Give --key-file or --token here, and the header "Authorization: Bearer KEY" in the host. For a login in ' +
      'the browser the tenant needs auth.issuers or auth.login (docs/login.md).'
  )
}
