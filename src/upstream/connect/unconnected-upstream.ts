// Stand-ins for upstreams to which no request can be sent yet. For a person who has not connected an account or entered
// a secret: a server of 2025-11-25 whose tool asks to open a web page (client/elicitation "URL Elicitation Required
// Error"); where all people see the same tools, those are listed too, and a call of one asks for the page. For the
// gateway's own listing of an upstream that is told who calls: an empty server.

import { randomBytes } from 'node:crypto'
import { GatewayError, type JsonObject, type Request, type Result } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { type ConnectPage, ConnectRequiredError, type ToolsOfOthers } from '../rpc/credential.ts'

export const connectToolOf = (upstream: string): string => `connect_${upstream}`

interface Unconnected {
  readonly person: string | undefined
  /** The tools that other people see; undefined: they are not listed. */
  readonly others: ToolsOfOthers | undefined
  /** Called when the list of tools changes; undefined: nobody listens. */
  readonly changed: (() => void) | undefined
}

export function unconnectedUpstream(
  { name, description }: Pick<UpstreamDefinition, 'name'> & { readonly description?: string },
  page: ConnectPage,
  { person, others, changed }: Unconnected
): Upstream {
  const tool: JsonObject = {
    name: connectToolOf(name),
    title: `Connect ${name}`,
    description:
      `${description ?? `The tools of ${name}`} can be used once the person has connected ${name}. Call this tool to ` +
      'get the link to the page where they do that.',
    inputSchema: { type: 'object', additionalProperties: false },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }

  async function request({ method }: Request, client: Client): Promise<Result> {
    if (method === 'ping') return {}
    if (method === 'tools/list') {
      const shared = (await others?.read()) ?? []
      return { tools: [tool, ...shared.filter((each) => each['name'] !== tool['name'])] }
    }
    const { url, message } = page(client.quotaKey ?? person)
    throw new ConnectRequiredError(message, url)
  }

  return ownServer(name, request, changed && others?.onChange(changed))
}

export const unaskedUpstream = ({ name }: Pick<UpstreamDefinition, 'name'>): Upstream =>
  ownServer(name, ({ method }) => {
    if (method === 'ping') return Promise.resolve({})
    if (method === 'tools/list') return Promise.resolve({ tools: [] })
    const message = `Upstream ${name} needs to know who calls, and this request is nobody's: it was not sent.`
    return Promise.reject(new GatewayError('upstream_unavailable', message, { data: { upstream: name } }))
  })

/** @param end called when the stand-in is closed or destroyed */
function ownServer(name: UpstreamDefinition['name'], request: Upstream['request'], end = () => {}): Upstream {
  return {
    id: randomBytes(16).toString('base64url'),
    name,
    era: 'legacy',
    revision: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name, version: '0' },
    instructions: undefined,
    serverRequestsNameCall: true,
    request,
    notify() {},
    close: () => Promise.resolve(end()),
    destroy: end
  }
}
