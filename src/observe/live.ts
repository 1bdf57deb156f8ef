// What happens right now, for whoever listens: calls as they end, those that run, audit records as they are made. Where
// nobody does it costs nothing.

export type LiveKind = 'call' | 'running' | 'audit'

export interface LiveListener {
  readonly kind: LiveKind
  /** undefined: of all. */
  readonly tenants: ReadonlySet<string> | undefined
  /** @param text JSON in one line */
  take(tenant: string, text: string): void
}

export type LiveEvents = ReturnType<typeof createLiveEvents>

export function createLiveEvents() {
  const listeners = new Set<LiveListener>()
  return {
    /** @param make the event as JSON in one line; called only where somebody listens */
    happened(kind: LiveKind, tenant: string, make: () => string): void {
      if (listeners.size === 0) return
      let text: string | undefined
      for (const each of listeners) {
        if (each.kind !== kind || each.tenants?.has(tenant) === false) continue
        text ??= make()
        each.take(tenant, text)
      }
    },
    isListenedTo(kind: LiveKind): boolean {
      for (const each of listeners) if (each.kind === kind) return true
      return false
    },
    /** @returns what stops it; idempotent */
    listen(listener: LiveListener): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    }
  }
}
