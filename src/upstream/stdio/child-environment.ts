// Makes the environment of a child, and masks secrets in what the child writes: the values of its variables and
// arguments, and everything that has the form of a known kind of token.

import type { Environment } from '../../config/references.ts'
import { secretArguments, secretForms, urlCredentials, writtenForms } from '../../config/secret-values.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { masked, maskParts, secretParts } from '../rpc/mask.ts'

/** Variables about the user and the system, which most programs expect. */
const atHome = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']
/** Variables for a network that is reached through a proxy, or where a company has its own certificate authority. */
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
/** Variables whose values are never masked, because they hold no secrets. */
const plain: ReadonlySet<string> = new Set([...atHome, ...authorities])

/** @returns the child's environment: a few variables of the gateway, those in `inheritEnv`, and `env` */
export function environment(
  base: Environment,
  { env: own, inheritEnv = [] }: Pick<StdioDefinition, 'env' | 'inheritEnv'>
): Record<string, string> {
  // Some shells would run a value like "() { ..." as a function, so it is not inherited.
  const taken = [...inherited, ...inheritEnv].flatMap((name) => {
    const value = base[name]
    return value === undefined || value.startsWith('()') ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(taken), ...own }
}

/** @returns the variables of the child that may hold secrets; the URL of a proxy, for example, may hold a password */
export const maskedEnvironment = (
  base: Environment,
  definition: Pick<StdioDefinition, 'env' | 'inheritEnv'>
): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(environment(base, definition)).filter(([name]) => !plain.has(name))),
  ...definition.env
})

// Matches tokens that the definition does not contain: keys of this gateway, tokens of GitHub, GitLab, Slack, AWS and
// Google, keys of model providers, JSON Web Tokens, credentials after Bearer or Basic, and passwords within URLs. A
// match begins only after a character that no token contains, which keeps the search linear. A short text after Bearer
// or Basic matches only if it does not look like a word.
const known = new RegExp(
  [
    // Must stand before the GitHub tokens: those have no hyphens and would match only a part of these.
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
 * Masks secrets in a text, since a child may print its own environment or command line. All other text is kept.
 * @param env the variables that may hold secrets, see `maskedEnvironment`
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
