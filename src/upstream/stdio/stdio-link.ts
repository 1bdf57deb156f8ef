// MCP over stdio, one JSON-RPC message a line (2025-11-25 basic/transports "stdio", 2026-07-28 basic/transports/stdio).
// In the legacy era one process is one session; the modern era has no sessions.

import { textBytes, withMemory } from '../../limits/memory.ts'
import { type Era, GatewayError, type ModernRevision, RpcError } from '../../protocol/messages.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { noClient } from '../../protocol/seams.ts'
import { deadline } from '../../time/clock.ts'
import {
  type DiscoverAnswer,
  type DiscoverResult,
  type NotModern,
  discoverModern,
  discoverRequest,
  isNotModern,
  notModern
} from '../modern/discover.ts'
import { createUpstreamSubscriptions } from '../modern/listen-streams.ts'
import { createModernCodec, createModernRequests } from '../modern/modern-requests.ts'
import { closedError, lostError, upstreamError } from '../rpc/errors.ts'
import { type HandshakeResult, type Link, initialize } from '../rpc/link.ts'
import { createRpcClient } from '../rpc/rpc-client.ts'
import { longRequestLength } from '../rpc/transport.ts'
import type { Child } from './child-process.ts'
import { createMask } from './child-environment.ts'
import { createMessageReader } from './child-output.ts'
import { createStderrLog } from './child-stderr.ts'
import type { StepSource } from '../../time/turns.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { LinkContext } from '../rpc/transport.ts'
import { ProcessEndedError } from './start-error.ts'
import type { Supervisor } from './supervisor.ts'

export interface StdioLink extends Link {
  /**
   * Asks whether the server speaks 2026-07-28, and uses that era from then on if it does. If it does not and its
   * process still runs, the caller may call `handshake` next.
   * @param silenceMs after how long without an answer the server counts as legacy
   * @throws GatewayError if the process does not run, or there is no common revision
   */
  discover(silenceMs: number, signal: AbortSignal): Promise<DiscoverResult | NotModern>
  /** The process has ended. */
  isDead(): boolean
}

/**
 * Starts the child. If the start fails later than here, `discover` or `handshake` rejects.
 * @throws GatewayError too_many
 */
export function openStdio(definition: StdioDefinition, supervisor: Supervisor, link: LinkContext): StdioLink {
  const { name } = definition
  const { handshake, events, clock, log, use } = link
  const mask = createMask({ ...definition, env: supervisor.maskedEnvironment(definition) })
  const errors = lateSource(() => child.stderr)
  const stderr = createStderrLog(name, mask, link, errors)
  let handshakeResult: HandshakeResult | undefined
  let era: Era = 'legacy'
  /** The link was closed or takes no new requests, so the end of the process is not reported. */
  let closing = false
  let dead = false

  const codec = createModernCodec(definition, link)
  const rpc = createRpcClient({
    definition,
    link,
    revision: () => handshakeResult?.revision,
    codec: () => (era === 'modern' ? codec : undefined),
    transport: {
      changePart: escapedLineEnds,
      request(id, body) {
        const written = body.length < longRequestLength ? undefined : () => rpc.written(id)
        if (write(child, link, body, written)) return
        const text = `Upstream ${name} does not read its input, so the request was not sent. It is hung or overloaded.`
        throw upstreamError(name, 'upstream_unavailable', text)
      },
      post(body) {
        if (!write(child, link, body))
          log.debug({ upstream: name }, 'dropped a message to an upstream that does not read its input')
      },
      drop() {}
    }
  })
  const texts = { mask, strayLines: supervisor.strayLines }
  const stdout = lateSource(() => child.stdout)
  const reader = createMessageReader(definition, link, texts, rpc, stdout, (reason) => {
    lost(reason)
    child.kill()
  })
  const child = supervisor.spawn(definition, link, {
    stdout: reader.push,
    stderr: stderr.push,
    ended(reason) {
      stderr.end((early) => {
        if (reason instanceof ProcessEndedError) reason.explain(early)
      })
      // The last output may contain the answer to a pending request.
      reader.whenIdle(() => lost(reason))
    }
  })
  const subscriptions = createUpstreamSubscriptions(definition, link, rpc)
  const modernRequest = createModernRequests({
    definition,
    link,
    rpc,
    codec,
    subscriptions,
    paramHeaders: undefined,
    // The error of a tool does not prove that the tool did nothing: it may come from a later step of the tool, or from
    // another server that the tool called.
    provesNotExecuted: (_error, { method }) => method !== 'tools/call',
    eraLost() {
      if (dead || closing) return
      closing = true
      const reason = lostError(name, 'ended: its process no longer speaks revision 2026-07-28')
      subscriptions.end(reason)
      events.closed(reason)
    }
  })

  function lost(reason: Error): void {
    if (dead) return
    dead = true
    reader.stop()
    endCalls(reason)
    if (closing) return
    log.debug({ upstream: name, reason: reason.message }, 'the upstream process ended')
    if (handshakeResult !== undefined) events.closed(reason)
  }

  /** Sends one `server/discover`. A server that does not answer, or not with a result, counts as legacy. */
  async function ask(revision: ModernRevision, silenceMs: number, signal: AbortSignal): Promise<DiscoverAnswer> {
    const limit = deadline(clock, silenceMs, signal)
    try {
      const result = await rpc.request(discoverRequest(revision, handshake.clientInfo), noClient, limit.signal)
      return { kind: 'result', result }
    } catch (error) {
      if (error instanceof RpcError) return { kind: 'error', error: error.error, proper: true }
      if (limit.passed()) {
        const what = `it did not answer server/discover within ${silenceMs / 1000} s`
        return { kind: 'foreign', ...notModern(name, what, error), silent: true }
      }
      const unusable =
        error instanceof GatewayError && (error.code === 'upstream_lost' || error.data['outcome'] === 'unknown')
      if (!unusable || limit.signal.aborted) throw error
      // Some servers exit when they receive anything before `initialize`.
      return { kind: 'foreign', ...notModern(name, 'it ended, or answered with what is no result', error) }
    } finally {
      limit.close()
    }
  }

  function endCalls(reason: Error): void {
    rpc.end(reason)
    subscriptions.end(reason)
  }

  return {
    transport: 'stdio',
    rpc: {
      ...rpc,
      request: (...call) => (era === 'modern' ? modernRequest : rpc.request)(...call),
      // A server of 2026-07-28 gets no notifications about its clients: each request carries what it needs to know.
      notify(notification) {
        if (era === 'legacy') rpc.notify(notification)
      }
    },
    handshakeResult: () => handshakeResult,
    isDead: () => dead,
    async discover(silenceMs, signal) {
      era = 'modern'
      const found = await discoverModern(name, (revision) => ask(revision, silenceMs, signal))
      if (isNotModern(found)) {
        era = 'legacy'
        return found
      }
      handshakeResult = found
      stderr.started()
      codec.revision = found.revision
      if (use === 'listing' || handshake.watchesLists === true) subscriptions.watchLists(found.capabilities)
      return found
    },
    async handshake(signal) {
      const result = (handshakeResult = await initialize(rpc, name, handshake, signal))
      stderr.started()
      rpc.notify({ method: 'notifications/initialized' })
      return result
    },
    close() {
      closing = true
      endCalls(closedError(name))
      return child.close()
    },
    destroy(reason) {
      closing = true
      endCalls(reason)
      child.kill()
    }
  }
}

/**
 * Escapes U+2028 and U+2029. JSON allows them within a string, but many line readers, such as Node's readline, end a
 * line there and would cut the message in two.
 */
const escapedLineEnds = (text: string): string =>
  text.replace(/[\u2028\u2029]/g, (character) => (character === '\u2028' ? '\\u2028' : '\\u2029'))

/**
 * Writes one message. Its memory stays counted until the process has read it, even if the call ends before.
 * @param written called when the process has read the message, or never will
 * @returns false if the process does not read its input or no memory is left; then nothing was written
 */
function write(child: Pick<Child, 'write'>, { memory }: LinkContext, body: JsonText, written?: () => void): boolean {
  const line = typeof body === 'string' ? `${escapedLineEnds(body)}\n` : body
  const read = withMemory(memory, textBytes(line), () => {})
  const left = (): void => {
    read?.()
    written?.()
  }
  const isWritten = read !== undefined && child.write(line, written === undefined ? read : left)
  if (!isWritten) read?.()
  return isWritten
}

/** Stands for a source that is created after its reader. */
const lateSource = (made: () => StepSource): StepSource => ({
  pause: () => made().pause(),
  resume: () => made().resume(),
  destroy: (fault) => made().destroy(fault)
})
