// The API key of the commands that need no configuration: created once, kept in the data folder, readable for its owner
// only.

import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** @returns the key in `DIR/api-key`, which is created if absent */
export async function localApiKey(dataDir: string): Promise<string> {
  const path = join(dataDir, 'api-key')
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const made = `gh_${randomBytes(32).toString('base64url')}`
  // A link is atomic: another process that starts at the same time must not read half a key.
  const draft = `${path}.${process.pid}`
  try {
    await writeFile(draft, made + '\n', { mode: 0o600 })
    await link(draft, path)
    return made
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    const kept = (await readFile(path, 'utf8')).trim()
    if (!/^gh_[A-Za-z0-9_-]{43}$/.test(kept))
      throw new Error(`${path} does not contain an API key of the gateway. Delete the file to get a new one.`, {
        cause: error
      })
    return kept
  } finally {
    await rm(draft, { force: true })
  }
}
