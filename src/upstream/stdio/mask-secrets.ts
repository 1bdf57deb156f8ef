// What a child writes is free text that we log, and it may print its own environment or command line: their values are
// masked.

import type { StdioDefinition } from '../../config/snapshot.ts'

/** @returns the text with each secret in it replaced by `***` */
export type Mask = (text: string) => string

/** A shorter value is no secret, and masking it would spoil ordinary words. */
const minLength = 8

/** Masks the definition's variables and arguments, and of `--name=value` the value too. */
export function createMask({ args, env }: Pick<StdioDefinition, 'args' | 'env'>): Mask {
  const given = [...Object.values(env), ...args, ...args.map((arg) => arg.slice(arg.indexOf('=') + 1))]
  // A secret of several lines, such as a PEM key, is read back line by line.
  const parts = given.flatMap((value) => [value, ...value.split(/[\r\n]+/)]).map((part) => part.trim())
  const secrets = [...new Set(parts)].filter((part) => part.length >= minLength).sort((a, b) => b.length - a.length)

  return (text) => {
    let masked = text
    for (const secret of secrets) masked = masked.replaceAll(secret, '***')
    // A text that was cut may end within a secret.
    for (const secret of secrets) {
      for (let length = secret.length - 1; length >= minLength; length--) {
        if (masked.endsWith(secret.slice(0, length))) return `${masked.slice(0, -length)}***`
      }
    }
    return masked
  }
}
