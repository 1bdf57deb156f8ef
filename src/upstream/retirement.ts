// A connection that is given up while others still have calls on it: it takes no new ones, and ends with the last.

import { endedError } from './endings.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { Exchange } from './exchange.ts'

export interface Retirement {
  /** As the one it was made with, until it begins. */
  readonly request: Exchange['request']
  begin (reason: Error): void
}

/** @param last no call is left; at most once */
export function createRetirement (name: UpstreamName, request: Exchange['request'], last: (reason: Error) => void): Retirement {
  let reason: Error | undefined
  let calls = 0

  return {
    request (...call) {
      if (reason !== undefined) return Promise.reject(endedError(name, reason))
      calls++
      const result = request(...call)
      const ended = (): void => {
        calls--
        if (calls === 0 && reason !== undefined) last(reason)
      }
      result.then(ended, ended)
      return result
    },
    begin (given) {
      if (reason !== undefined) return
      reason = given
      if (calls === 0) last(given)
    }
  }
}
