// Puts kill switches and takes them back: of any tenant that there is, whoever manages it.

import type { Kill } from '../config/snapshot.ts'
import type { Clock } from '../time/clock.ts'
import { ControlError } from './control-error.ts'
import { isSameKill, killsPrefix, withKill, type DatedKill } from './kills.ts'
import type { ChangeAuthor } from './version-record.ts'

/**
 * Writes a version.
 * @param judged what to write, judged anew where another writer was first: new texts by name; undefined: removed
 * @throws ControlError conflict, GatewayError unavailable, and whatever `judged` throws
 */
export type Commit = (
  about: { readonly author: ChangeAuthor; readonly action: string },
  judged: () => ReadonlyMap<string, string | undefined>,
  attempt?: number
) => Promise<void>

export interface KillSwitch {
  readonly author: ChangeAuthor
  readonly tenant: string
  readonly kill: Kill
  readonly verb: 'put' | 'delete'
}

const noSuchThing = (what: string): ControlError =>
  new ControlError('not_found', `There is no such ${what}, or this key is not for it.`, 'List what there is.')

interface KillSwitchOptions {
  readonly killsOf: (tenant: string) => readonly DatedKill[]
  readonly isKnown: (tenant: string) => boolean
  readonly commit: Commit
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
}

export function createKillSwitches({ killsOf, isKnown, commit, wall }: KillSwitchOptions) {
  return {
    /** @returns whether it was not so already. @throws ControlError not_found, limit_reached */
    async turn({ author, tenant, kill, verb }: KillSwitch): Promise<boolean> {
      let isChanged = false
      await commit({ author, action: `kill.${verb}` }, () => {
        if (!isKnown(tenant)) throw noSuchThing('tenant')
        const before = killsOf(tenant)
        const dated = { ...kill, at: new Date(wall.now()).toISOString(), by: author.name }
        const left = before.filter((each) => !isSameKill(each, kill))
        if (verb === 'delete' && left.length === before.length) throw noSuchThing('kill switch')
        const after = verb === 'put' ? withKill(before, dated) : left
        isChanged = after !== undefined
        if (after === undefined) return new Map()
        return new Map([[killsPrefix + tenant, after.length === 0 ? undefined : JSON.stringify(after)]])
      })
      return isChanged
    }
  }
}
