// The environment of a child, and what of it is secret in what the child writes: its variables and arguments, and what
// is a token by its form alone.

import type { Environment } from '../../config/references.ts'
import { secretArguments, secretForms, urlCredentials, writtenForms } from '../../config/secret-values.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { masked, maskParts, secretParts } from '../rpc/mask.ts'

/** What a program needs to find itself at home. */
const atHome = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']
/** What it needs to reach the network where that goes through a proxy, or where a company signs certificates itself. */
const network = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']
const authorities = [
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE'
]
const inherited = [...atHome, ...network, ...network.map((name) => name.toLowerCase()), ...authorities]
/** Say who and where it is: no secrets, whatever they look like. */
const plain: ReadonlySet<string> = new Set([...atHome, ...authorities])

/** The child's environment: a handful of inherited variables and what the definition says. */
export function environment(
  base: Environment,
  { env: own, inheritEnv = [] }: Pick<StdioDefinition, 'env' | 'inheritEnv'>
): Record<string, string> {
  // A value like "() { ..." is a shell function, which some shells would run.
  const taken = [...inherited, ...inheritEnv].flatMap((name) => {
    const value = base[name]
    return value === undefined || value.startsWith('()') ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(taken), ...own }
}

/** Of the child's environment what may hold secrets: a proxy is often named with its user and password. */
export const maskedEnvironment = (
  base: Environment,
  definition: Pick<StdioDefinition, 'env' | 'inheritEnv'>
): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(environment(base, definition)).filter(([name]) => !plain.has(name))),
  ...definition.env
})

// A child may have tokens that the definition does not know: keys of gateways, tokens of GitHub, GitLab, Slack, AWS and
// Google, keys of model providers, JSON Web Tokens, what stands after Bearer or Basic, and passwords within URLs. Each
// begins where none of its characters precedes, so that a line is gone through once. What is short after Bearer or
// Basic has to look like no word.
const known = new RegExp(
  [
    // Ahead of the tokens of GitHub, which have no hyphens.
    'gatehouse_[\\w-]{43}[\\da-f]{8}|gha?_[\\w-]{43}',
    'gh[a-z]_\\w{16,}|github_pat_\\w{16,}|glpat-[\\w-]{16,}|sk-[\\w-]{16,}|xox[a-z]-[\\w-]{10,}',
    '(?:AKIA|ASIA)[A-Z\\d]{16}|AIza[\\w-]{30,}',
    'eyJ[\\w-]{6,}\\.eyJ[\\w-]{6,}\\.[\\w-]*',
    `(?<=\\b(?i:bearer|basic)[\\s:="']{1,4})(?:[\\w.~+/-]{16,}=*|(?=[\\w.~+/-]*(?:[\\d=]|[a-z][A-Z]))[\\w.~+/-]{8,}=*)`,
    `(?<=(?i:[a-z][a-z\\d+.-]{0,30}):\\/\\/[^\\s:@/?#]{0,200}:)[^\\s/]{1,500}(?=@)`
  ]
    .map((form) => `(?<![\\w-])(?:${form})`)
    .join('|'),
  'g'
)

/**
 * A child may print its own environment or command line: masks what of it is secret, and nothing else, so that its log
 * stays of use.
 * @param env as `maskedEnvironment`
 */
export function createMask({
  args,
  env,
  argumentSecrets = [],
  references = []
}: Pick<StdioDefinition, 'args' | 'env' | 'argumentSecrets' | 'references'>): (text: string) => string {
  const ofEnv = Object.entries(env).flatMap(([name, value]) => secretForms(name, value))
  const given = [...argumentSecrets, ...references]
  const secrets = secretParts(
    [...ofEnv, ...secretArguments(args), ...given, ...given.flatMap((each) => urlCredentials(each))].flatMap(
      writtenForms
    )
  )
  return (text) => maskParts(text, secrets).replace(known, masked)
}
