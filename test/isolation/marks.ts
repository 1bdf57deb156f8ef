// What all secrets of a run have in common: a mark, and after it the letter of their tenant. Both are also what some
// plain text is in base64url, so that they stand in access tokens as well, whose bytes are their issuer's.

import { randomInt } from 'node:crypto'

/** Of the tenants, and what follows the plain text of the mark to be this letter in base64url. */
const letters = ['a', 'b', 'c', 'd', 'e', 'f'] as const
const plainLetters = ['h', 'l', 'p', 't', 'x', '|'] as const

export interface Marks {
  readonly mark: string
  readonly letters: typeof letters
  /** A scope: a token that has one of these of a tenant holds its mark and letter, whatever comes before in it. */
  scopesOf(letter: string): readonly string[]
}

const alphanumeric = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const randomText = (length: number): string =>
  Array.from({ length }, () => alphanumeric[randomInt(alphanumeric.length)]).join('')

/** Three letters or digits that are four lower-case letters or digits in base64url. */
function randomGroup(): string {
  for (;;) {
    const plain = randomText(3)
    if (/^[a-z][a-z0-9]{3}$/.test(Buffer.from(plain).toString('base64url'))) return plain
  }
}

export function randomMarks(): Marks {
  const plain = randomGroup() + randomGroup() + randomGroup()
  return {
    mark: Buffer.from(plain).toString('base64url'),
    letters,
    // In base64 it is seen only where it begins at a third character.
    scopesOf: (letter) =>
      ['', '-', '--'].map((before) => `${before}${plain}${plainLetters[letters.findIndex((each) => each === letter)]}`)
  }
}
