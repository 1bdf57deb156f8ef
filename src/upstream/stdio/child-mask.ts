// Secrets in what a child writes for the log: those of its definition, and what is a token by its form alone.

import { passwordOf, secretArguments, secretForms } from '../../config/secret-values.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { masked, maskParts, secretParts } from '../rpc/mask.ts'

// A child may have tokens that the definition does not know: of GitHub, GitLab, Slack, AWS and Google, keys of model
// providers, JSON Web Tokens, what stands after Bearer or Basic, and passwords within URLs. Each begins where none of
// its characters precedes, so that a line is gone through once. What is short after Bearer or Basic has to look like no
// word.
const known = new RegExp(
  [
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
 */
export function createMask({
  args,
  env,
  argumentSecrets = [],
  references = []
}: Pick<StdioDefinition, 'args' | 'env' | 'argumentSecrets' | 'references'>): (text: string) => string {
  const ofEnv = Object.entries(env).flatMap(([name, value]) => secretForms(name, value))
  const given = [...argumentSecrets, ...references]
  const secrets = secretParts([...ofEnv, ...secretArguments(args), ...given, ...given.map(passwordOf)])
  return (text) => maskParts(text, secrets).replace(known, masked)
}
