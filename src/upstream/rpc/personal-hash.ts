// Of one upstream several definitions may be in use: that of everybody, and those with what a person has given for it,
// or with what its server is told of a caller. Their hashes begin with that of everybody.

export const hashSeparator = '.'

export const hashOfEverybody = (hash: string): string => hash.split(hashSeparator, 1)[0] ?? hash
