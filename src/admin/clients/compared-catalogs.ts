// What differs between two catalogs, and the tokens that they take. In steps: each may have 20,000 entries.

import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { isSameJson } from '../../relay/catalog/past/same-entries.ts'
import type { Steps } from '../../time/turns.ts'

export interface SeenEntry {
  readonly name: string
  readonly upstream: string
  readonly upstreamName: string
  readonly definition: JsonObject
}

/** An estimate, because hosts pass this JSON to the model. */
const charactersPerToken = 4
export const tokensOf = (value: unknown): number => Math.ceil(JSON.stringify(value).length / charactersPerToken)

/** Of all definitions, as one list. A step for each. */
export function* tokensOfAll(entries: readonly SeenEntry[]): Steps<number> {
  let characters = 2 + Math.max(0, entries.length - 1)
  for (const each of entries) {
    characters += JSON.stringify(each.definition).length
    yield
  }
  return Math.ceil(characters / charactersPerToken)
}

/** A step for each entry. */
export function* diffOf(from: readonly SeenEntry[], to: readonly SeenEntry[]) {
  const [before, after] = [from, to].map((each) => new Map(each.map(({ name, definition: told }) => [name, told])))
  const changed: Array<{ readonly name: string; readonly from: JsonObject; readonly to: JsonObject }> = []
  let same = 0
  for (const { name, definition: told } of from) {
    const other = after?.get(name)
    if (other === undefined) continue
    if (isSameJson(told, other) || canonicalJsonOf(told) === canonicalJsonOf(other)) same++
    else changed.push({ name, from: told, to: other })
    yield
  }
  return {
    onlyFrom: from.map(({ name }) => name).filter((name) => after?.has(name) !== true),
    onlyTo: to.map(({ name }) => name).filter((name) => before?.has(name) !== true),
    changed,
    same,
    tokens: { from: yield* tokensOfAll(from), to: yield* tokensOfAll(to) }
  }
}
