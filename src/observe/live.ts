// What happens right now, for whoever listens: calls as they end, those that run, audit records as they are made. Where
// nobody does it costs nothing.

export type LiveKind = 'call' | 'running' | 'audit'

export interface LiveListener {
  readonly kind: LiveKind
  /** undefined: of all. */
  readonly tenants: ReadonlySet<string> | undefined
  /**
   * @param text JSON in one line
   * @param short the same in few characters, for whom there is no room for all of it; undefined: there is no such
   */
  take(tenant: string, text: string, short?: string): void
}

export type LiveEvents = ReturnType<typeof createLiveEvents>

export function createLiveEvents() {
  const listeners = new Set<LiveListener>()
  return {
    /**
     * @param make the event as JSON in one line; called only where somebody listens
     * @param short see LiveListener
     */
    happened(kind: LiveKind, tenant: string, make: () => string, short?: string): void {
      if (listeners.size === 0) return
      let text: string | undefined
      for (const each of listeners) {
        if (each.kind !== kind || each.tenants?.has(tenant) === false) continue
        text ??= make()
        each.take(tenant, text, short)
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
