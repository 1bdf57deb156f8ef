// Secrets in what a child writes for the log: those of its definition, and what is a token by its form alone.

import { formsOf, isSecret, passwordOf, secretArguments } from '../../config/secret-values.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { masked, maskParts, secretParts } from '../rpc/mask.ts'

// A child may have tokens that the definition does not know: of GitHub, GitLab, Slack, AWS and Google, keys of model
// providers, JSON Web Tokens, and what stands after Bearer. Each begins where none of its characters precedes, so that
// a line is gone through once.
const known = new RegExp(
  [
    'gh[a-z]_\\w{16,}|github_pat_\\w{16,}|glpat-[\\w-]{16,}|sk-[\\w-]{16,}|xox[a-z]-[\\w-]{10,}',
    '(?:AKIA|ASIA)[A-Z\\d]{16}|AIza[\\w-]{30,}',
    'eyJ[\\w-]{6,}\\.eyJ[\\w-]{6,}\\.[\\w-]*',
    '(?<=\\bBearer )[\\w.~+/-]{16,}=*'
  ]
    .map((form) => `(?<![\\w-])(?:${form})`)
    .join('|'),
  'g'
)

/**
 * A child may print its own environment or command line: masks what of it is secret, and nothing else, so that its log
 * stays of use.
 */
export function createMask({
  args,
  env,
  argumentSecrets = [],
  references = []
}: Pick<StdioDefinition, 'args' | 'env' | 'argumentSecrets' | 'references'>): (text: string) => string {
  const ofEnv = Object.entries(env).flatMap(([name, value]) => (isSecret(name, value) ? formsOf(value) : []))
  const given = [...argumentSecrets, ...references]
  const secrets = secretParts([...ofEnv, ...secretArguments(args), ...given, ...given.map(passwordOf)])
  return (text) => maskParts(text, secrets).replace(known, masked)
}
