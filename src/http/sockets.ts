// Connections of clients: never so many that none is left for upstreams, processes, files and the store. Where all
// places are taken, one gives way on which nobody was let in: the oldest of the network that most of them come from;
// else whoever has most of them. So neither somebody without a token nor one caller keeps the others out.

import type { Socket } from 'node:net'
import { networkOf } from '../limits/client-network.ts'
import { areDescriptorsFree, outOfDescriptors } from '../limits/descriptors.ts'
import { createLargestGroup } from '../limits/largest-group.ts'
import { createFairEviction } from '../limits/limits.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { WorkOwner } from '../time/fair-queue.ts'
import { turnShares } from '../time/turn-shares.ts'
import type { ClientReply } from './reply.ts'

/** However many descriptors there are: an idle connection takes some 20 KiB of memory. */
const maxClientConnections = 16_384
/** Of the memory for calls, in bytes: idle connections may take a quarter of it. */
const memoryPerConnection = 81_920
/** Part of the descriptors that connections of clients may take: a call takes one more, towards its upstream. */
const descriptorsPerConnection = 2
/** Part of the connections that those leave free who were let in: who comes next must be able to say who it is. */
const perNewcomer = 8

/** As the context of a request has them. */
interface Caller {
  readonly tenant: string
  readonly person: string
}

interface Connection {
  readonly socket: Socket
  /** That it comes from: behind a proxy that of the proxy. */
  readonly network: string
  /** Who was let in last; behind a proxy it may be many, one after the other. */
  caller: Caller | undefined
  /** To requests that were let in. */
  readonly responses: ClientReply[]
}

export type Connections = ReturnType<typeof createConnections>

/**
 * @param descriptors that the process may have open
 * @param memoryBytes that calls may take
 * @param shares of the event loop, of which strangers pay for new connections
 */
export function createConnections(descriptors: number, memoryBytes: number, log: Log, shares = turnShares) {
  const most = [maxClientConnections, descriptors / descriptorsPerConnection, memoryBytes / memoryPerConnection]
  const max = Math.max(2, Math.floor(Math.min(...most)))
  const maxLetIn = max - Math.max(1, Math.floor(max / perNewcomer))
  // Not at the first free place, so that the log does not fill with ups and downs.
  const relievedAt = Math.floor(maxLetIn * 0.9)
  const open = new Map<Socket, Connection>()
  /** Those on which nobody was let in yet, by their networks. */
  const strangers = createLargestGroup<Connection>()
  const letIn = createFairEviction<Connection>({ perOwner: maxLetIn, perTenant: maxLetIn, max: maxLetIn })
  let count = 0
  let full = false
  let spent = false
  let check: Promise<void> | undefined

  function forget(connection: Connection): void {
    open.delete(connection.socket)
    leave(connection)
    isNoStranger(connection)
    if (!full || open.size > relievedAt) return
    full = false
    log.info({ connections: open.size }, 'there are free connections again')
  }

  function leave(connection: Connection): void {
    const { caller } = connection
    if (caller === undefined) return
    letIn.delete(caller.tenant, caller.person, connection)
    connection.caller = undefined
    strangers.add(connection.network, connection)
  }

  const isNoStranger = (connection: Connection): void => strangers.delete(connection.network, connection)

  function giveUp(connection: Connection): void {
    forget(connection)
    connection.socket.destroy()
  }

  function noteFull(): void {
    if (full) return
    full = true
    log.warn(
      { connections: open.size, limit: max, descriptors },
      'all connections of clients are in use: those of nobody, and of whoever has most, are closed for new ones. ' +
        'Raise the number of open files that the process may have (ulimit -n), or limits.memoryBytes, or ' +
        'run more processes'
    )
  }

  /** One at a time, because anybody may ask for readiness. */
  async function checkDescriptors(): Promise<void> {
    const wasSpent = spent
    spent = !(await areDescriptorsFree())
    check = undefined
    if (spent && !wasSpent) log.warn({ descriptors }, outOfDescriptors)
    if (!spent && wasSpent) log.info('there are file descriptors again')
  }

  /** @throws GatewayError too_many where those of this caller are as many as anybody's, and all are in use */
  function makeRoom(caller: Caller): void {
    const candidates = letIn.evictFrom(caller.tenant, caller.person)
    if (candidates === undefined) return
    noteFull()
    const idle = candidates.values().find(({ responses }) => responses.length === 0)
    const [oldest] = candidates
    const isOwn = oldest?.caller?.person === caller.person
    // What runs is ended only for somebody who has less, and never the only one of a caller.
    const victim = idle ?? (isOwn || candidates.size < 2 ? undefined : oldest)
    if (victim !== undefined) return giveUp(victim)
    throw new GatewayError(
      'too_many',
      `All ${maxLetIn} connections of this gateway process are in use. Close some, or retry in a second.`,
      { data: { limit: 'connections' } }
    )
  }

  return {
    /** How many there were so far. */
    get count() {
      return count
    },
    get openCount() {
      return open.size
    },
    max,
    /** A client has connected. */
    opened(socket: Socket): void {
      shares.begin('')
      count++
      // Unknown where it has gone already.
      const network = networkOf(socket.remoteAddress ?? '')
      if (open.size >= max) {
        noteFull()
        const oldest = strangers.toGiveUp(network)
        if (oldest !== undefined) giveUp(oldest)
      }
      const connection: Connection = { socket, network, caller: undefined, responses: [] }
      open.set(socket, connection)
      strangers.add(network, connection)
      socket.once('close', () => forget(connection))
    },
    /**
     * A request on it was let in, which the response will answer.
     * @throws GatewayError too_many
     */
    letIn(response: ClientReply, caller: Caller): void {
      // The response has no socket yet where the one before it on the connection is not answered.
      const connection = open.get(response.req.socket)
      if (connection === undefined) return
      if (connection.caller?.person !== caller.person) {
        leave(connection)
        makeRoom(caller)
        isNoStranger(connection)
        connection.caller = caller
        letIn.add(caller.tenant, caller.person, connection)
      }
      const { responses } = connection
      responses.push(response)
      response.once('close', () => responses.splice(responses.indexOf(response), 1))
    },
    /** Who was let in last on it; all strangers are one. */
    ownerOf(socket: Socket): WorkOwner {
      const { tenant, person } = open.get(socket)?.caller ?? { tenant: '', person: '' }
      return { tenant, caller: person }
    },
    /**
     * Each connection is closed after the response that is under way: a proxy would send the next request on it, and
     * lose that where the process ends first.
     */
    closeAfterResponses(): void {
      for (const { responses } of open.values()) for (const response of responses) closeAfter(response)
    },
    /** To Node a connection that never sent a byte is a busy one; clients and browsers open such in advance. */
    closeSilent(): void {
      for (const socket of open.keys()) if (socket.bytesRead === 0) socket.destroy()
    },
    /** @returns what is used up, for the operator; undefined where more clients can be served. Never rejects */
    async fault(): Promise<string | undefined> {
      if (full) return 'all connections of clients are in use'
      await (check ??= checkDescriptors())
      return spent ? outOfDescriptors : undefined
    }
  }
}

/** The client is told so where the head of the response has not gone out yet. */
export function closeAfter(response: ClientReply): void {
  const { socket } = response.req
  if (!response.headersSent) response.shouldKeepAlive = false
  else response.once('finish', () => socket.end())
}
