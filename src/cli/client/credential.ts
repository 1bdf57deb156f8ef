// Reads a key or token from a file, a variable or an option. An invalid one is not printed: it may be another secret.

import { readFile } from 'node:fs/promises'
import { UsageError } from '../commands/command.ts'

/** @param place what gave it, such as `--token` @returns it, without spaces around it. @throws UsageError */
export function credentialIn(text: string, place: string, wanted: string): string {
  const credential = text.trim()
  if (credential === '') throw new UsageError(`${place} is empty. It takes ${wanted}.`)
  // As a header can carry it (RFC 9110 section 5.5).
  if (!/^[\x21-\x7e]+$/.test(credential))
    throw new UsageError(`${place} does not have ${wanted} alone: that is one word of letters, digits and signs.`)
  return credential
}

/** @throws UsageError */
export async function credentialOfFile(file: string, option: string, wanted: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const takes = `${option} takes a file with ${wanted}.`
  if (text === undefined) throw new UsageError(`${file} cannot be read. ${takes}`)
  if (text.trim() === '') throw new UsageError(`${file} is empty. ${takes}`)
  return credentialIn(text, file, wanted)
}
