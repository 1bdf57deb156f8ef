// Whose secrets stand in a text. All secrets of a run hold one mark, followed by the letter of their tenant: a text is
// gone through once, however many tenants and people there are, and a part of a secret is found, too.

import type { House } from './world.ts'

/** Where texts are found that somebody, or something of one tenant, gets. */
export const places = [
  ...(['answer', 'stream of events', 'server', 'line of the log', 'live calls', 'live audit'] as const),
  ...(['metrics', 'keys of the store', 'audit record'] as const)
] as const
export type Place = (typeof places)[number]

/** Before a secret that was sent to the wrong tenant on purpose. */
export const plantedBefore = 'planted-'

export type Owner = Pick<House, 'id' | 'letter'>

export interface Search {
  /** What was found where it should not be. */
  readonly leaks: string[]
  /** How often what was planted was found. */
  readonly planted: ReadonlyMap<Place, number>
  /** How much was gone through, in characters. */
  readonly searched: ReadonlyMap<Place, number>
  /**
   * @param own whose text it is; undefined: of no tenant
   * @returns whether something of its own stands in it
   */
  judge(place: Place, own: Owner | undefined, text: string): boolean
  /** @returns judges a text that comes in pieces, cut anywhere */
  pieces(place: Place, own: Owner): (piece: string) => void
}

/** @param mark stands in every secret of every tenant */
export function createSearch(mark: string, tenants: readonly Owner[]): Search {
  const leaks: string[] = []
  const planted = new Map<Place, number>()
  const searched = new Map<Place, number>()

  function judge(place: Place, own: Owner | undefined, text: string): boolean {
    searched.set(place, (searched.get(place) ?? 0) + text.length)
    let hasOwn = false
    for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + mark.length)) {
      const letter = text[at + mark.length]
      // A text that is cut there says of nobody that it is theirs.
      if (letter === undefined) continue
      if (letter === own?.letter) hasOwn = true
      else if (text.startsWith(plantedBefore, at - plantedBefore.length))
        planted.set(place, (planted.get(place) ?? 0) + 1)
      else {
        const whose = tenants.find((each) => each.letter === letter)?.id
        leaks.push(
          `${place} of ${own?.id} has something of ${whose}: ${text.slice(Math.max(0, at - 1_000), at + 1_000)}`
        )
      }
    }
    return hasOwn
  }

  return {
    leaks,
    planted,
    searched,
    judge,
    pieces(place, own) {
      let rest = ''
      return (piece) => {
        const text = rest + piece
        judge(place, own, text)
        // What the next piece may go on with; whole, it was judged.
        rest = text.slice(-(plantedBefore.length + mark.length))
      }
    }
  }
}
