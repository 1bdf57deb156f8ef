// The official SDK as a host uses it, in two versions: a current one, and one from before 2025-11-25.

import { type Teardown, until } from '../../kit/until.ts'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Client as Client13 } from 'sdk-1.13/client/index.js'
import { StreamableHTTPClientTransport as Transport13 } from 'sdk-1.13/client/streamableHttp.js'

export interface Sdk {
  readonly name: string
  /** What it asks for in initialize. */
  readonly revision: string
  readonly Client: typeof Client
  readonly HttpTransport: typeof StreamableHTTPClientTransport
}

export const sdk32: Sdk = {
  name: 'SDK 1.32',
  revision: '2025-11-25',
  Client,
  HttpTransport: StreamableHTTPClientTransport
}
// The same API in all that these tests use; only the names of its types are others.
export const sdk13: Sdk = {
  name: 'SDK 1.13',
  revision: '2025-06-18',
  Client: Client13 as unknown as typeof Client,
  HttpTransport: Transport13 as unknown as typeof StreamableHTTPClientTransport
}

export interface Heard {
  readonly method: string
  readonly params?: Record<string, unknown>
}

export interface SdkSession {
  readonly client: Client
  readonly transport: StreamableHTTPClientTransport
  /**
   * Resolves with the next notification that fits and that no option of a request takes. What came before the call does
   * not count.
   */
  next(what: string, fits: (notification: Heard) => boolean): Promise<Heard>
}

/** Connects; when the test ends, ends the session with DELETE as a host does. */
export async function connectSdk(t: Teardown, sdk: Sdk, url: string, token: string): Promise<SdkSession> {
  const client = new sdk.Client({ name: sdk.name, version: '1' }, { capabilities: {} })
  const transport = new sdk.HttpTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } }
  })
  const heard: Heard[] = []
  client.fallbackNotificationHandler = async ({ method, params }) => {
    heard.push({ method, ...(params === undefined ? {} : { params }) })
  }
  t.teardown(async () => {
    // A gateway that the test has stopped cannot be told any more.
    await transport.terminateSession().catch(() => {})
    await client.close()
  })
  await client.connect(transport)
  return {
    client,
    transport,
    next(what, fits) {
      const from = heard.length
      return until(what, () => heard.slice(from).find(fits))
    }
  }
}

/** A stdio server without anything between: what the gateway is compared with. */
export async function direct(
  t: Teardown,
  command: string,
  args: readonly string[],
  env: Record<string, string> = {}
): Promise<Client> {
  const client = new Client({ name: 'direct', version: '1' }, { capabilities: {} })
  t.teardown(() => client.close())
  await client.connect(new StdioClientTransport({ command, args: [...args], env, stderr: 'ignore' }))
  return client
}
