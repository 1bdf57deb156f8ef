// Programs whose contents the operator has named (`admin.allowedCommands`): the file at their path is compared before
// each start, so that whoever can replace it does not choose what runs.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { UnreachableError } from '../rpc/errors.ts'

/** Files whose digests are remembered, as long as nothing was written to them. */
const maxFiles = 100

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer)
  return digest.digest('hex')
}

export function createKnownPrograms() {
  const digests = new Map<string, string>()
  /** @throws UnreachableError where the file is another one, or cannot be read */
  return async ({ name, command, sha256 }: Pick<StdioDefinition, 'name' | 'command' | 'sha256'>): Promise<void> => {
    if (sha256 === undefined) return
    try {
      // The time of the last change of its entry cannot be set back.
      const { dev, ino, size, ctimeNs } = await stat(command, { bigint: true })
      const file = [command, dev, ino, size, ctimeNs].join(' ')
      const digest = digests.get(file) ?? (await digestOf(command))
      if (digests.size >= maxFiles) digests.clear()
      digests.set(file, digest)
      if (digest === sha256) return
    } catch (cause) {
      throw new UnreachableError(
        'upstream_unavailable',
        `Upstream ${name} cannot start: ${command} cannot be read to compare it.`,
        { cause }
      )
    }
    throw new UnreachableError(
      'upstream_unavailable',
      `Upstream ${name} cannot start: ${command} is not the program whose digest admin.allowedCommands names. ` +
        'If it was updated, have its new SHA-256 put there.'
    )
  }
}
