// The lists that a caller of 2026-07-28 has to itself: what the connections of its conversation have reported as
// changed.

import { isModernCaller, type ModernViewer } from '../call/call.ts'
import { declaredForCaller } from '../client/declared-capabilities.ts'
import { conversationScopeOf, isOfNoConversation } from '../client/modern-client.ts'
import type { OwnLists, OwnListsByUpstream } from './own-lists.ts'

const none: OwnListsByUpstream = new Map()

export function createCallerLists(ownLists: Pick<OwnLists, 'lists' | 'pending' | 'empty'>) {
  const scopes = new WeakMap<ModernViewer, readonly string[]>()
  const together = new WeakMap<OwnListsByUpstream, WeakMap<OwnListsByUpstream, OwnListsByUpstream>>()

  /**
   * Returns the scopes of the connections of a caller: to servers that are told nothing at a handshake, and to those
   * that are told what the client declares.
   */
  function scopesOf(viewer: ModernViewer): readonly string[] {
    if (ownLists.empty || !isModernCaller(viewer) || isOfNoConversation(viewer)) return []
    const declared = declaredForCaller(viewer, 'legacy')
    const both = scopes.get(viewer) ?? [
      conversationScopeOf(viewer),
      ...(Object.keys(declared).length === 0 ? [] : [conversationScopeOf(viewer, declared)])
    ]
    scopes.set(viewer, both)
    return both
  }

  return {
    /** Returns the lists of a caller: the same object until they change. */
    of(viewer: ModernViewer): OwnListsByUpstream | undefined {
      const [plain, declaring] = scopesOf(viewer)
      const ofModern = plain === undefined ? undefined : ownLists.lists.get(plain)
      if (declaring === undefined) return ofModern
      const ofLegacy = ownLists.lists.get(declaring)
      if (ofModern === undefined) return ofLegacy
      const known = together.get(ofModern) ?? new WeakMap<OwnListsByUpstream, OwnListsByUpstream>()
      together.set(ofModern, known)
      const both =
        known.get(ofLegacy ?? none) ??
        new Map([...[...ofModern].filter(([, { era }]) => era === 'modern'), ...(ofLegacy ?? none)])
      known.set(ofLegacy ?? none, both)
      return both.size === 0 ? undefined : both
    },
    /** Returns the lists that are still being read. None of the promises rejects. */
    pending: (viewer: ModernViewer): Array<Promise<void>> => scopesOf(viewer).flatMap(ownLists.pending)
  }
}
