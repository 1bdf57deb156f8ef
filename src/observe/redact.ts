// Arguments and results as they may be written down where a tenant wants them: without the values of members whose
// names say that they are secret, at any depth.

import { anyMatcher } from '../protocol/glob.ts'
import { isLongText } from '../protocol/json-text.ts'

/**
 * @param names in lower case; `*` is any text
 * @returns JSON; undefined where it is long
 */
export function redactedJson(value: object, names: readonly string[]): string | undefined {
  if (isLongText(value)) return undefined
  const isSecret = names.length === 0 ? () => false : anyMatcher(names)
  return JSON.stringify(value, (name, member: unknown) => (isSecret(name.toLowerCase()) ? '[redacted]' : member))
}
