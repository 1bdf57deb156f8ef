// Lists page by page: in the order of their names, each page after the last name of the one before, so that what comes
// and goes between two pages makes no entry appear twice.

import { hash } from 'node:crypto'
import type { TSchema } from 'typebox'
import { closedObject, integer } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import { AdminProblem } from './problem.ts'

/** The most entries of a page. */
const maxEntries = 200
const usualEntries = 50
const maxCursorLength = 1_024
/** The longest name in a cursor, in characters: a longer one is replaced by its digest. */
const maxNameLength = 256
const keptNameLength = 200

export const pageQuery = {
  limit: integer(1, maxEntries, usualEntries, 'Number of entries of a page.'),
  cursor: Type.Optional(
    Type.String({
      maxLength: maxCursorLength,
      description: 'The `nextCursor` of the page before. Not given: the first page.'
    })
  )
}

export interface PageRequest {
  readonly limit: number
  readonly cursor?: string | undefined
}

export const pageSchema = <Item extends TSchema>(item: Item) =>
  closedObject({
    items: Type.Array(item),
    nextCursor: Type.Union([Type.String(), Type.Null()], { description: 'null: this is the last page.' })
  })

/** @param nameOf is unique among the items. @throws AdminProblem invalid_request */
export function page<Item>(items: Iterable<Item>, nameOf: (item: Item) => string, { limit, cursor }: PageRequest) {
  const after = cursor === undefined ? undefined : nameIn(cursor)
  const named = [...items].map((item) => ({ item, name: shortName(nameOf(item)) }))
  const rest = named
    .filter(({ name }) => after === undefined || name > after)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const last = rest.length > limit ? rest[limit - 1] : undefined
  return {
    items: rest.slice(0, limit).map(({ item }) => item),
    nextCursor: last === undefined ? null : Buffer.from(last.name).toString('base64url')
  }
}

const shortName = (name: string): string =>
  (name.length <= maxNameLength
    ? name
    : name.slice(0, keptNameLength) + hash('sha256', name, 'base64url')
  ).toWellFormed()

function nameIn(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (name !== '' && Buffer.from(name).toString('base64url') === cursor) return name
  throw foreignCursor()
}

export const foreignCursor = (): AdminProblem =>
  new AdminProblem('invalid_request', 'The cursor is none of this list.', 'Begin again without a cursor.')
