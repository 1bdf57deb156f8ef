// An upstream whose calls are counted: a connection with a call in flight is not idle, and a reload waits for it.

import type { Upstream } from '../protocol/seams.ts'

export interface Counter {
  began (): void
  ended (): void
  /** In place of the upstream's own. */
  close (): Promise<void>
  destroyed (): void
}

export function counted (upstream: Upstream, counter: Counter): Upstream {
  return {
    name: upstream.name,
    era: upstream.era,
    // A transport that had to repeat its handshake may have got another answer.
    get revision () { return upstream.revision },
    get capabilities () { return upstream.capabilities },
    get serverInfo () { return upstream.serverInfo },
    get instructions () { return upstream.instructions },
    namesCalls: upstream.namesCalls,
    owed: upstream.owed,
    request (request, client, signal) {
      counter.began()
      const result = upstream.request(request, client, signal)
      result.then(counter.ended, counter.ended)
      return result
    },
    notify: (notification) => upstream.notify(notification),
    close: () => counter.close(),
    destroy (reason) {
      counter.destroyed()
      upstream.destroy(reason)
    }
  }
}
