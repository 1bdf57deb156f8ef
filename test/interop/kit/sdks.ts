// The official SDK of several ages, by one interface: their API is the same in all that the tour uses, only the names
// of types differ.

import { type Teardown } from '../../kit/until.ts'
import type * as ClientModule from '@modelcontextprotocol/sdk/client/index.js'
import type * as OldSseModule from '@modelcontextprotocol/sdk/client/sse.js'
import type * as HttpModule from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type * as Types from '@modelcontextprotocol/sdk/types.js'
import type { Revision } from '../../../src/protocol/messages.ts'

export type { Types }

export interface Sdk {
  readonly name: string
  /** The alias it is installed under. */
  readonly package: string
  /** The newest revision that it knows, and what it asks for in initialize. */
  readonly revision: Revision
  /** What it has; 1.0.4 is older than Streamable HTTP. */
  readonly transports: ReadonlyArray<'http' | 'sse'>
}

export const sdks: readonly Sdk[] = [
  { name: 'SDK 1.0.4', package: 'sdk-1.0.4', revision: '2024-11-05', transports: ['sse'] },
  { name: 'SDK 1.10', package: 'sdk-1.10', revision: '2024-11-05', transports: ['http', 'sse'] },
  { name: 'SDK 1.12', package: 'sdk-1.12', revision: '2025-03-26', transports: ['http', 'sse'] },
  { name: 'SDK 1.20', package: 'sdk-1.20', revision: '2025-06-18', transports: ['http', 'sse'] },
  { name: 'SDK 1.25', package: 'sdk-1.25', revision: '2025-11-25', transports: ['http', 'sse'] },
  { name: 'SDK 1.32', package: '@modelcontextprotocol/sdk', revision: '2025-11-25', transports: ['http', 'sse'] }
]

export const newest = sdks.at(-1) as Sdk

/** A module of that version, as the newest one types it. */
async function load<Module>(sdk: Pick<Sdk, 'package'>, path: string): Promise<Module> {
  return (await import(`${sdk.package}/${path}.js`)) as Module
}

export interface Connected {
  readonly client: ClientModule.Client
  /** The schemas of that very version. */
  readonly types: typeof Types
}

/** What a client of this revision can be asked; nothing that it does not know. */
export function capabilitiesOf(revision: Revision): Types.ClientCapabilities {
  const elicitation = revision < '2025-06-18' ? undefined : revision < '2025-11-25' ? {} : { form: {}, url: {} }
  return { sampling: {}, roots: { listChanged: true }, ...(elicitation === undefined ? {} : { elicitation }) }
}

/**
 * Connects over HTTP; leaves when the test ends.
 * @param token sent as a bearer; undefined: somebody else adds it
 * @param more for Streamable HTTP
 */
export async function connect(
  t: Teardown,
  sdk: Sdk,
  transport: 'http' | 'sse',
  url: string,
  token: string | undefined,
  more: HttpModule.StreamableHTTPClientTransportOptions = {}
): Promise<Connected> {
  const [{ Client }, types] = await Promise.all([
    load<typeof ClientModule>(sdk, 'client/index'),
    load<typeof Types>(sdk, 'types')
  ])
  const client = new Client({ name: sdk.name, version: '1' }, { capabilities: capabilitiesOf(sdk.revision) })
  const options = token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } }
  if (transport === 'http') {
    const { StreamableHTTPClientTransport } = await load<typeof HttpModule>(sdk, 'client/streamableHttp')
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { ...options, ...more }))
  } else {
    const { SSEClientTransport } = await load<typeof OldSseModule>(sdk, 'client/sse')
    await client.connect(new SSEClientTransport(new URL(url), options))
  }
  t.teardown(() => client.close())
  return { client, types }
}
