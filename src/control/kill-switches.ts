// Puts kill switches and takes them back: of any tenant that there is, whoever manages it. What a platform-admin has
// stopped no tenant-admin starts again.

import type { Kill } from '../config/policy/kill.ts'
import type { Clock } from '../time/clock.ts'
import { ControlError } from './control-error.ts'
import { isOfPlatform, isSameKill, killTexts, withKill, type DatedKill } from './kills.ts'
import { bothTargets, sameTarget, type KillTargets, type SameTarget } from './same-targets.ts'
import type { ChangeAuthor } from './version-record.ts'

type WantedTexts = ReadonlyMap<string, string | undefined>

/**
 * Writes a version.
 * @param judged what to write, judged anew where another writer was first: new texts by name; undefined: removed
 * @throws ControlError conflict, GatewayError unavailable, and whatever `judged` throws
 */
export type Commit = (
  about: { readonly author: ChangeAuthor; readonly action: string },
  judged: () => WantedTexts | Promise<WantedTexts>,
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

/**
 * Whoever misspells what has to stop must hear it.
 * @param known what the tenant has here, and by its newest document
 * @throws ControlError not_found, not_usable
 */
function checkTarget(kill: Kill, known: readonly KillTargets[]): void {
  if (kill.kind === 'tool' && kill.tool.includes('*'))
    throw new ControlError(
      'not_usable',
      'A kill switch stops one tool, and takes no pattern.',
      'Stop each tool by its name, or the whole upstream.'
    )
  const isThere = known.some(({ upstreams, auth }) => {
    if (kill.kind === 'tool' || kill.kind === 'upstream') return upstreams.has(kill.upstream)
    return kill.kind !== 'key' || auth.keys.some(({ name }) => name === kill.key)
  })
  if (!isThere) throw noSuchThing(kill.kind === 'key' ? 'API key' : 'upstream')
}

/** What a kill switch is afterwards. */
export interface SwitchedKill {
  /** false: it was so already. */
  readonly isChanged: boolean
  /** Nothing of its name was stopped before. */
  readonly isNew: boolean
  /** undefined: it was taken back. */
  readonly kill: DatedKill | undefined
}

interface KillSwitchOptions {
  readonly killsOf: (tenant: string) => readonly DatedKill[]
  readonly isKnown: (tenant: string) => boolean
  /** What the tenant has without its kill switches: here, and by its newest document where that is not in use here. */
  readonly targetsOf: (tenant: string) => readonly KillTargets[]
  readonly commit: Commit
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
}

export function createKillSwitches({ killsOf, isKnown, targetsOf, commit, wall }: KillSwitchOptions) {
  return {
    /** @throws ControlError not_found, not_usable, forbidden, limit_reached */
    async set({ author, tenant, kill, verb }: KillSwitch): Promise<SwitchedKill> {
      let switched: SwitchedKill = { isChanged: false, isNew: false, kill: undefined }
      await commit({ author, action: `kill.${verb}` }, () => {
        if (!isKnown(tenant)) throw noSuchThing('tenant')
        const before = killsOf(tenant)
        const known = targetsOf(tenant)
        const byPlatform = author.role === 'platform-admin'
        // Several where an earlier version has put one again that it could not recognise.
        const same = before.filter((each) => isSameKill(each, kill))
        const left = before.filter((each) => !same.includes(each))
        const target = same.reduce((all: SameTarget | undefined, each) => bothTargets(all, each.same), undefined)
        const dated = { ...kill, at: new Date(wall.now()).toISOString(), by: author.name, role: author.role }
        let after: readonly DatedKill[] | undefined
        if (verb === 'delete') {
          if (same.length === 0) throw noSuchThing('kill switch')
          if (same.some(isOfPlatform) && !byPlatform)
            throw new ControlError('forbidden', 'A platform-admin has put this kill switch.', 'Ask a platform-admin.')
          after = left
        } else {
          if (same.length === 0) checkTarget(kill, known)
          // What both have stopped is the platform-admin's to start.
          const kept = same.find(isOfPlatform) ?? (byPlatform ? undefined : same[0])
          // Kill switches of earlier versions say nothing of the target.
          const isTold = kept !== undefined && target !== undefined
          const all = isTold ? target : known.reduce((sum, each) => bothTargets(sum, sameTarget(kill, each)), target)
          if (kept === undefined || same.length > 1 || all !== target)
            after = withKill(left, { ...(kept ?? dated), ...(all && { same: all }) })
        }
        const now = (after ?? before).find((each) => isSameKill(each, kill))
        switched = { isChanged: after !== undefined, isNew: same.length === 0, kill: now }
        return after === undefined ? new Map() : killTexts(tenant, before, after)
      })
      return switched
    }
  }
}
