// Requests by Node's own client, for those that look at a connection more closely than `fetch`, and its agents for
// libraries that make requests themselves. All sockets are those of sockets.ts.

import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import type { Agent, ClientRequest, RequestOptions } from 'node:http'
import { nodeHttp } from '../limits/node-http.ts'
import { type Guarded, openSocket } from './sockets.ts'

interface RequestMade extends Pick<RequestOptions, 'method' | 'headers'> {
  readonly signal?: AbortSignal
  readonly guarded?: Guarded | undefined
  readonly ca?: string | undefined
}

/** Opens a request on a connection of its own, which ends with it. */
export function openRequest(url: URL, { guarded, ca, ...options }: RequestMade): ClientRequest {
  const request = url.protocol === 'https:' ? tlsRequest : nodeHttp.request
  return request(url, { ...options, createConnection: () => openSocket(url, { guarded, ca }) })
}

/** Creates the agent of a library that makes requests to `url` and nowhere else, which an operator wrote. */
export function agentTo(url: URL): Agent {
  const agent = new (url.protocol === 'https:' ? TlsAgent : nodeHttp.Agent)({ keepAlive: true })
  agent.createConnection = () => openSocket(url)
  return agent
}
