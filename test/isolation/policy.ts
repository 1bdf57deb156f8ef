// Rules by chance.

import type { Random } from '../fuzz/random.ts'
import type { Member } from './world.ts'

/** Rules that take something from somebody, and leave the first of the people most. */
export function policyOf(chance: Random, people: readonly string[], members: readonly Member[]): object {
  const isOpen = chance.chance(0.6)
  const open = { name: 'open', effect: 'allow', ...(chance.chance(0.5) && { who: { keys: people.slice(0, 2) } }) }
  const rules = Array.from({ length: chance.below(5) }, (_, at) => ({
    name: `rule-${at}`,
    effect: chance.pick(['deny', 'allow', 'deny']),
    ...(chance.chance(0.6) && { who: chance.pick([{ keys: people.slice(1, 2) }, { subjects: ['robot'] }]) }),
    what: {
      ...(chance.chance(0.5) && { upstreams: [chance.pick(members).name] }),
      names: [chance.pick(['f*', 'content', 'pid', 'progress', '*two', 'slow'])]
    }
  }))
  const sums = { name: 'sums', effect: 'deny', what: { kinds: ['tool'] }, when: 'has(args.n) && args.n > 90' }
  const when = chance.chance(0.5) ? [sums] : []
  return isOpen
    ? { default: 'allow', rules: [...rules, ...when] }
    : { default: 'deny', rules: [open, ...rules, ...when] }
}
