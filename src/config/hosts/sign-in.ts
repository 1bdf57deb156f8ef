// Translates the sign-in settings of a server in another host's file (`oauth` of Claude Code, Gemini CLI, opencode and
// others, `auth` of Cursor) to an account that each person connects: `auth: { type: user }`.

import { isTree, treeOf, type Tree } from '../shape.ts'

const spellings: ReadonlyArray<readonly [name: string, ...spellings: string[]]> = [
  ['clientId', 'clientId', 'client_id', 'CLIENT_ID'],
  ['clientSecret', 'clientSecret', 'client_secret', 'CLIENT_SECRET'],
  ['issuer', 'issuer'],
  ['authorizationUrl', 'authorizationUrl'],
  ['tokenUrl', 'tokenUrl'],
  ['scopes', 'scopes', 'scope']
]

export interface SignIn {
  /** For the upstream; undefined: its host does not sign in there. */
  readonly auth: Tree | undefined
  /** Names of members that have no counterpart. */
  readonly ignored: readonly string[]
}

/** @param server of the file */
export function signInOf(server: Tree): SignIn {
  const given = [server['oauth'], server['auth']].find((each) => isTree(each) && each['enabled'] !== false)
  if (given === undefined) return { auth: undefined, ignored: [] }
  const tree = treeOf(given)
  const auth: Record<string, unknown> = { type: 'user' }
  for (const [name, ...others] of spellings) {
    const found = others.map((other) => tree[other]).find((each) => typeof each === 'string' || Array.isArray(each))
    if (name !== 'scopes' && typeof found === 'string' && found !== '') auth[name] = found
    if (name !== 'scopes' || found === undefined) continue
    auth[name] = typeof found === 'string' ? found.split(/[\s,]+/).filter((scope) => scope !== '') : found
  }
  // The two URLs are only usable together and with a client; otherwise the server's metadata are used.
  if ([auth['clientId'], auth['authorizationUrl'], auth['tokenUrl']].includes(undefined)) {
    delete auth['authorizationUrl']
    delete auth['tokenUrl']
  }
  if (auth['clientId'] === undefined) delete auth['clientSecret']
  const known = new Set(['enabled', ...spellings.flatMap(([, ...others]) => others)])
  return { auth, ignored: Object.keys(tree).filter((key) => !known.has(key)) }
}
