// What a person needs after the start: the URL, the API key, and commands to try it.

import type { Snapshot } from '../config/snapshot.ts'
import { latestLegacy } from '../protocol/messages.ts'

export interface BannerOptions {
  readonly publicUrl: string
  readonly snapshot: Snapshot
  readonly key: string
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: latestLegacy, capabilities: {}, clientInfo: { name: 'curl', version: '1' } }
}

export function banner({ publicUrl, snapshot, key }: BannerOptions): string {
  const lines: string[] = ['']
  for (const tenant of snapshot.tenants.values()) {
    for (const endpoint of tenant.endpoints.values()) {
      const url = publicUrl + endpoint.path
      lines.push(
        `  Endpoint   ${url}`,
        `  Upstreams  ${endpoint.members.map(({ upstream }) => upstream).join(', ')}`,
        `  API key    ${key}`,
        '',
        '  Paste this into the mcp.json of your host:',
        '',
        ...JSON.stringify(
          { mcpServers: { gatehouse: { type: 'http', url, headers: { Authorization: `Bearer ${key}` } } } },
          null,
          2
        )
          .split('\n')
          .map((line) => '    ' + line),
        '',
        '  Or try it here:',
        '',
        `    npm exec -- mcp-inspector --cli ${url} --transport http --header "Authorization: Bearer ${key}" ` +
          '--method tools/list',
        '',
        `    curl ${url} -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
        `      -d '${JSON.stringify(initialize)}'`,
        ''
      )
    }
  }
  return lines.join('\n') + '\n'
}
