// Rules between `auth` of an upstream and the rest of its definition.

import type { Path, Report } from '../problems.ts'
import { redisAddress } from '../redis-address.ts'
import { listOf, stringOrNone, treeOf, type Tree } from '../shape.ts'

/**
 * Variables from which the linker, the shell and interpreters load code: a person who enters one could run any code.
 */
const commandVariable = new RegExp(
  '^(?:PATH|HOME|IFS|SHELL|ENV|LD_.*|DYLD_.*|BASH_ENV|NODE_OPTIONS|NODE_PATH|NODE_EXTRA_CA_CERTS|PYTHON.*|PERL5.*|' +
    'RUBY.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|GIT_.*|NPM_CONFIG_.*|HTTPS?_PROXY|ALL_PROXY)$',
  'i'
)

/**
 * @param path of the upstream
 * @param around `vault` and `store` of the configuration; `auth` of the tenant
 */
export function checkUpstreamAuth(
  upstream: Tree,
  path: Path,
  report: Report,
  { vault, store, tenantAuth }: { readonly vault: unknown; readonly store: unknown; readonly tenantAuth: Tree }
): void {
  const auth = treeOf(upstream['auth'])
  const { type } = auth
  const place = [...path, 'auth']
  if (type === undefined) return
  checkWritten(upstream, auth, path, report)
  if (type === 'clientCredentials') checkClientCredentials(auth, place, report)
  if (type === 'user') checkUser(auth, place, report)
  if (type === 'tokenExchange') checkTokenExchange(auth, place, report, tenantAuth)
  if (type === 'signed') checkSigned(auth, place, report)
  const kept = typeof type === 'string' ? keptInVault(type, store) : undefined
  if (kept !== undefined && listOf(treeOf(vault)['keys']).length === 0)
    report.add(
      place,
      `keeps ${kept} in the store, and there is no vault to seal it with`,
      'Add vault at the top: vault: { keys: [{ id: "1", key: "${file:PATH}" }] }, with a file made by: ' +
        'openssl rand -base64 32.'
    )
}

/**
 * What `auth` of this type stores in the vault; undefined: nothing. With a store of one process, exchanged tokens stay
 * in memory.
 */
function keptInVault(type: string, store: unknown): string | undefined {
  if (type === 'signed') return 'what it signs with'
  if (type === 'user' || type === 'userSecret') return 'what people give'
  const isShared = typeof store === 'string' && redisAddress(store) !== undefined
  return type === 'tokenExchange' && isShared ? 'what tokens were exchanged for' : undefined
}

/** Refuses headers and variables that `auth` sets, too. */
function checkWritten({ headers, env }: Tree, auth: Tree, path: Path, report: Report): void {
  const written = (stringOrNone(auth['header']) ?? 'Authorization').toLowerCase()
  const header = Object.keys(treeOf(headers)).find((name) => name.toLowerCase() === written)
  if (header !== undefined)
    report.add([...path, 'headers', header], 'is what auth writes', 'Remove it, or remove auth.')
  const variable = stringOrNone(auth['env'])
  if (variable === undefined) return
  if (Object.hasOwn(treeOf(env), variable))
    report.add([...path, 'env', variable], 'is what auth writes', 'Remove it, or remove auth.')
  if (commandVariable.test(variable))
    report.add(
      [...path, 'auth', 'env'],
      `is ${variable}, from which programs take what they run: whoever enters a value could run anything`,
      'Name a variable that the server itself reads its key from.'
    )
}

function checkUser(auth: Tree, place: Path, report: Report): void {
  const { clientId, clientSecret, authorizationUrl, tokenUrl, revocationUrl, provider, issuer } = auth
  if (revocationUrl !== undefined && tokenUrl === undefined && provider === undefined)
    report.add(
      [...place, 'revocationUrl'],
      'is in the metadata of the authorization server',
      'Remove it, or give authorizationUrl and tokenUrl, too.'
    )
  if (provider !== undefined && (clientId === undefined || clientSecret === undefined))
    report.add(
      place,
      'has a provider, but no clientId and clientSecret',
      'Register an application there by hand, and give its clientId and clientSecret.'
    )
  if (provider !== undefined && issuer !== undefined)
    report.add([...place, 'issuer'], 'is known where provider is given', 'Remove one of the two.')
  if ((authorizationUrl === undefined) !== (tokenUrl === undefined))
    report.add(
      place,
      'has only one of authorizationUrl and tokenUrl',
      'Give both, for servers without metadata, or neither.'
    )
  if (authorizationUrl !== undefined && clientId === undefined)
    report.add(
      place,
      'has no clientId, and a server without metadata registers no client by itself',
      'Register a client there by hand, and give its clientId.'
    )
  if (clientSecret !== undefined && clientId === undefined)
    report.add([...place, 'clientSecret'], 'is of no client', 'Give its clientId, too.')
}

function checkTokenExchange(auth: Tree, place: Path, report: Report, { issuers, login }: Tree): void {
  const signsIn = auth['subjectToken'] === 'idToken' && treeOf(treeOf(login)['provider'])['issuer'] === auth['issuer']
  if (!signsIn && !listOf(issuers).some((each) => treeOf(each)['issuer'] === auth['issuer']))
    report.add(
      [...place, 'issuer'],
      'is no issuer of this tenant: its callers have no tokens of it',
      'Name one of auth.issuers of the tenant, exactly as it stands there; or, with subjectToken: idToken, the ' +
        'issuer of auth.login.provider.'
    )
  const assertion = treeOf(auth['identityAssertion'])
  if (auth['identityAssertion'] !== undefined) checkOneProof(assertion, [...place, 'identityAssertion'], report)
}

/** Claims that the gateway itself sets, or that bind a token to a key. */
const ownClaims: ReadonlySet<string> = new Set([
  'iss',
  'sub',
  'sub_id',
  'aud',
  'client_id',
  'iat',
  'exp',
  'nbf',
  'jti',
  'cnf',
  'act',
  'may_act',
  '__proto__'
])

function checkSigned({ claims }: Tree, place: Path, report: Report): void {
  listOf(claims).forEach((claim, index) => {
    if (ownClaims.has(String(claim)))
      report.add([...place, 'claims', index], 'is a claim that the gateway writes itself', 'Remove it.')
  })
}

function checkClientCredentials(auth: Tree, place: Path, report: Report): void {
  checkOneProof(auth, place, report)
}

function checkOneProof({ clientSecret, privateKey }: Tree, place: Path, report: Report): void {
  if ((clientSecret === undefined) === (privateKey === undefined))
    report.add(
      place,
      clientSecret === undefined ? 'has neither clientSecret nor privateKey' : 'has both clientSecret and privateKey',
      'Give one of the two: it proves who the client is.'
    )
}
