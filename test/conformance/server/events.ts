// What was sent on the streams of one session, so that a client may come back for what it missed (SEP-1699).

import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'

/** In memory, without limit: a session of the suite lives for seconds. Ids are `{stream}_{number}`. */
export function createEvents(): EventStore {
  const events: Array<{ readonly id: string; readonly stream: string; readonly message: JSONRPCMessage }> = []
  const streamOf = (id: string): string => id.slice(0, id.lastIndexOf('_'))
  return {
    async storeEvent(stream, message) {
      const id = `${stream}_${events.length}`
      events.push({ id, stream, message })
      return id
    },
    getStreamIdForEventId: async (id) => (events.some((event) => event.id === id) ? streamOf(id) : undefined),
    async replayEventsAfter(lastId, { send }) {
      const stream = streamOf(lastId)
      const missed = events
        .slice(events.findIndex(({ id }) => id === lastId) + 1)
        .filter((event) => event.stream === stream)
      for (const { id, message } of missed) await send(id, message)
      return stream
    }
  }
}
