// Whose secrets stand in a text. All secrets of a run hold one mark, followed by the letter of their tenant: a text is
// gone through once, however many tenants and people there are, and a part of a secret is found, too.

import type { House, World } from './world.ts'

/** Where texts are found that somebody, or something of one tenant, gets. */
export const places = [
  ...(['answer', 'stream of events', 'server', 'line of the log', 'live calls', 'live audit'] as const),
  ...(['metrics', 'keys of the store', 'audit record'] as const)
] as const
export type Place = (typeof places)[number]

/** Before a secret that was sent to the wrong tenant on purpose. */
export const plantedBefore = 'planted-'

export interface Search {
  /** What was found where it should not be. */
  readonly leaks: string[]
  /** How often what was planted was found. */
  readonly planted: ReadonlyMap<Place, number>
  /** @param own whose text it is; undefined: of no tenant */
  judge(place: Place, own: House | undefined, text: string): void
}

/** @param mark stands in every secret, but tokens, which are what their issuer makes of them */
export function createSearch({ mark, houses }: Pick<World, 'mark' | 'houses'>): Search {
  const leaks: string[] = []
  const planted = new Map<Place, number>()
  const signatures = houses.flatMap((house) =>
    house.tokens.map((token) => ({ house, signature: token.slice(token.lastIndexOf('.')) }))
  )
  const report = (place: Place, own: House | undefined, whose: string, text: string): unknown =>
    leaks.push(`${place} of ${own?.id} has something of ${whose}: ${text.slice(0, 2_000)}`)

  return {
    leaks,
    planted,
    judge(place, own, text) {
      for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + mark.length)) {
        const letter = text[at + mark.length]
        // A text that is cut there says of nobody that it is theirs.
        if (letter === undefined || letter === own?.letter) continue
        if (text.startsWith(plantedBefore, at - plantedBefore.length)) planted.set(place, (planted.get(place) ?? 0) + 1)
        else report(place, own, String(houses.find((house) => house.letter === letter)?.id), text)
      }
      for (const { house, signature } of signatures)
        if (house !== own && text.includes(signature)) report(place, own, house.id, text)
    }
  }
}
