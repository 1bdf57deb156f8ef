// The API key of the commands that work without a configuration: made once, kept in the data folder for its owner only.

import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** @returns the key in `DIR/api-key`, made there if absent */
export async function ownKey (dataDir: string): Promise<string> {
  const path = join(dataDir, 'api-key')
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const made = `gh_${randomBytes(32).toString('base64url')}`
  // Whole or not at all: another first start at the same time must not read half a key.
  const draft = `${path}.${process.pid}`
  try {
    await writeFile(draft, made + '\n', { mode: 0o600 })
    await link(draft, path)
    return made
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    const kept = (await readFile(path, 'utf8')).trim()
    if (!/^gh_[A-Za-z0-9_-]{43}$/.test(kept)) throw new Error(`${path} does not hold a key of gatehouse. Delete the file to have a new one made.`, { cause: error })
    return kept
  } finally {
    await rm(draft, { force: true })
  }
}
