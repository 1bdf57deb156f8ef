// Programs whose contents the operator has named (`admin.allowedCommands`): the file at their path is compared before
// each start. It is started by its path: whoever can write there at that very moment is not kept out, so nobody but
// the operator should be able to.

import { createHash } from 'node:crypto'
import { constants, type BigIntStats } from 'node:fs'
import { open } from 'node:fs/promises'
import type { StdioDefinition } from '../../config/snapshot.ts'
import { UnreachableError } from '../rpc/errors.ts'
import { isFaultOfGateway } from './start-error.ts'

/** Files whose digests are remembered, as long as nothing was written to them. */
const maxFiles = 100
/** What was written to a moment ago may be written to again without another time of its change. In milliseconds. */
const settledMs = 2_000

/** The time of the last change of its entry cannot be set back. */
const stateOf = ({ dev, ino, size, ctimeNs }: BigIntStats): string => [dev, ino, size, ctimeNs].join(' ')

/** @param settled after how many milliseconds without a change a digest is remembered */
export function createKnownPrograms(settled = settledMs) {
  const digests = new Map<string, string>()

  /** Of one open file throughout: a link at its path may lead elsewhere a moment later. */
  async function digestOf(path: string): Promise<string> {
    // A pipe, which waits for somebody to write to it, is no program.
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

  /** @throws UnreachableError where the file is another one, or cannot be read; what is a fault of the gateway */
  return async ({ name, command, sha256 }: Pick<StdioDefinition, 'name' | 'command' | 'sha256'>): Promise<void> => {
    if (sha256 === undefined) return
    try {
      if ((await digestOf(command)) === sha256) return
    } catch (cause) {
      if (isFaultOfGateway(cause)) throw cause
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
