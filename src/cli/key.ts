// The generated API key of commands that run without a configuration file, and the text about how to use it.

import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Snapshot } from '../config/snapshot.ts'
import { latestLegacy } from '../protocol/messages.ts'
import { makeFolder } from '../store/sqlite/file.ts'

/** @returns the key in `DIR/api-key`, which is created if absent, readable for its owner only */
export const localApiKey = (dataDir: string): Promise<string> =>
  localSecret(dataDir, 'api-key', `gh_${randomBytes(32).toString('base64url')}`, /^gh_[A-Za-z0-9_-]{43}$/)

/** @returns the key in `DIR/vault-key`, which is created if absent, readable for its owner only */
export const localVaultKey = (dataDir: string): Promise<string> =>
  localSecret(dataDir, 'vault-key', randomBytes(32).toString('base64'), /^[A-Za-z0-9+/]{43}=$/)

/** @param made what is written where there is none. @param form that of those that are there */
async function localSecret(
  dataDir: string,
  name: 'api-key' | 'vault-key',
  made: string,
  form: RegExp
): Promise<string> {
  const path = join(dataDir, name)
  const unusable = (cause: NodeJS.ErrnoException): never => {
    throw new Error(
      `The data folder ${dataDir} cannot be used (${cause.code}). Choose one with --data that the user of the ` +
        'gateway may write to.',
      { cause }
    )
  }
  await makeFolder(dataDir).catch(unusable)
  // A link is atomic: another process that starts at the same time must not read half a key.
  const draft = `${path}.${process.pid}`
  try {
    await writeFile(draft, made + '\n', { mode: 0o600 }).catch(unusable)
    await link(draft, path)
    return made
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    const kept = (await readFile(path, 'utf8')).trim()
    if (!form.test(kept)) {
      const lost = name === 'api-key' ? '' : '; what people have connected has to be connected again, then'
      throw new Error(`${path} does not contain a key of the gateway. Delete the file to get a new one${lost}.`, {
        cause: error
      })
    }
    return kept
  } finally {
    await rm(draft, { force: true })
  }
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: latestLegacy, capabilities: {}, clientInfo: { name: 'curl', version: '1' } }
}

/** The URL, the API key, and commands to try it. */
export function banner(publicUrl: string, { tenants }: Snapshot, key: string): string {
  const lines: string[] = ['']
  for (const tenant of tenants.values()) {
    for (const endpoint of tenant.endpoints.values()) {
      const url = publicUrl + endpoint.path
      lines.push(
        `  Endpoint   ${url}`,
        `  Upstreams  ${endpoint.members.map(({ upstream }) => upstream).join(', ')}`,
        `  API key    ${key}`,
        '',
        '  Paste this into the mcp.json of your host:',
        '',
        JSON.stringify(
          { mcpServers: { gatehouse: { type: 'http', url, headers: { Authorization: `Bearer ${key}` } } } },
          null,
          2
        ).replaceAll(/^/gm, '    '),
        '',
        '  Or try it here (the Inspector needs Node.js 22.19 or newer):',
        '',
        `    npx @modelcontextprotocol/inspector --cli ${url} --transport http ` +
          `--header "Authorization: Bearer ${key}" --method tools/list`,
        '',
        `    curl ${url} -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
        `      -d '${JSON.stringify(initialize)}'`,
        ''
      )
    }
  }
  return lines.join('\n') + '\n'
}
