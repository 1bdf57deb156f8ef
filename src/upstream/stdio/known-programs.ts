// Compares a program with the SHA-256 that `admin.allowedCommands` names, before each start. The program is then
// started by its path, so whoever can replace the file between the comparison and the start is not stopped: only the
// operator should be able to write there.

import { createHash } from 'node:crypto'
import { constants, type BigIntStats } from 'node:fs'
import { open } from 'node:fs/promises'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { UnreachableError } from '../rpc/errors.ts'
import { isFaultOfGateway } from './start-error.ts'

/** The most files whose digest is remembered. A digest is computed again once the file has changed. */
const maxFiles = 100
/** Digests of files changed more recently are not remembered: another write may leave the same change time. */
const settledMs = 2_000

/** Identifies the contents of a file. Unlike the modification time, its ctime cannot be set back. */
const stateOf = ({ dev, ino, size, ctimeNs }: BigIntStats): string => [dev, ino, size, ctimeNs].join(' ')

/** @param settled for how many milliseconds a file must be unchanged before its digest is remembered */
export function createKnownPrograms(settled = settledMs) {
  const digests = new Map<string, string>()

  /** Opens the path only once, because a link at the path may point to another file a moment later. */
  async function digestOf(path: string): Promise<string> {
    // O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const stats = await file.stat({ bigint: true })
      if (!stats.isFile()) throw new Error(`${path} is no file`)
      const known = digests.get(stateOf(stats))
      if (known !== undefined) return known
      const digest = createHash('sha256')
      for await (const chunk of file.createReadStream({ autoClose: false })) digest.update(chunk as Buffer)
      const found = digest.digest('hex')
      const isSame = stateOf(await file.stat({ bigint: true })) === stateOf(stats)
      if (digests.size >= maxFiles) digests.clear()
      if (isSame && Date.now() - Number(stats.ctimeMs) >= settled) digests.set(stateOf(stats), found)
      return found
    } finally {
      await file.close()
    }
  }

  /** @throws UnreachableError if the file differs or cannot be read; the cause itself if `isFaultOfGateway` */
  return async ({ name, command, sha256 }: Pick<StdioDefinition, 'name' | 'command' | 'sha256'>): Promise<void> => {
    if (sha256 === undefined) return
    try {
      if ((await digestOf(command)) === sha256) return
    } catch (cause) {
      if (isFaultOfGateway(cause)) throw cause
      throw new UnreachableError(
        'upstream_unavailable',
        `Upstream ${name} cannot start: ${command} cannot be read to compare its SHA-256 with admin.allowedCommands. ` +
          'Make it readable for the gateway, or correct the command.',
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
