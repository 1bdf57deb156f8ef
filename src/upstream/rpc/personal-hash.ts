// Hashes of definitions. Of one upstream several definitions may be in use: the shared one, and personal ones, which
// have the credentials of a person or send the identity of a caller. The hash of a personal one begins with the shared
// hash.

export const hashSeparator = '.'

export const hashOfEverybody = (hash: string): string => hash.split(hashSeparator, 1)[0] ?? hash
