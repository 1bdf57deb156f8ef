// Private keys in PEM.

import { createPrivateKey } from 'node:crypto'

function privateKeyType(text: string): string | undefined {
  try {
    return createPrivateKey(text).asymmetricKeyType
  } catch {
    return undefined
  }
}

export const isEd25519Key = (text: string): boolean => privateKeyType(text) === 'ed25519'
export const isPrivateKey = (text: string): boolean =>
  text.startsWith('-----BEGIN PRIVATE KEY-----') && privateKeyType(text) !== undefined
