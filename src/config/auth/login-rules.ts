// Rules between values of a login front and what stands beside it.

import type { Path, Report } from '../problems.ts'
import { listOf, stringOrNone, treeOf, type Tree } from '../shape.ts'
import { placeholderOf } from './auth-config.ts'
import { loginPath } from './login-config.ts'
import { presetOfWrongIssuer } from './providers/presets.ts'

/**
 * @param auth of a tenant, with `login`
 * @param path of `auth`: `tenants`, the tenant, `auth`
 */
export function checkLogin(auth: Tree, path: Path, report: Report, publicUrl: unknown): void {
  const login = treeOf(auth['login'])
  const place = [...path, 'login']
  if (publicUrl === undefined)
    report.add(
      place,
      'needs publicUrl',
      'Give publicUrl, the origin that browsers use, such as https://mcp.example.com.'
    )
  const { issuer, scopes: asked = ['openid'] } = treeOf(login['provider'])
  if (/[{}]/.test(stringOrNone(issuer) ?? ''))
    report.add(
      [...place, 'provider', 'issuer'],
      'has a placeholder, and people sign in at one provider',
      'Write its issuer as it is, such as https://login.microsoftonline.com/DIRECTORY-ID/v2.0. With several ' +
        'directories, give each a tenant of its own, or list them under auth.issuers.'
    )
  const wrong = presetOfWrongIssuer(stringOrNone(issuer) ?? '')
  if (wrong !== undefined && !/[{}]/.test(String(issuer)))
    report.add([...place, 'provider', 'issuer'], `is no issuer of ${wrong.title}`, `It must be ${wrong.issuer.form}.`)
  if (!listOf(asked).includes('openid'))
    report.add([...place, 'provider', 'scopes'], 'has no openid', 'Add it: nobody can sign in without.')
  const missing = listOf(auth['requiredScopes']).filter((scope) => !listOf(login['scopes']).includes(scope))
  if (missing.length > 0)
    report.add(
      [...place, 'scopes'],
      `lacks ${missing.map(String).join(', ')}, without which nobody is let in (requiredScopes)`,
      'Add it to login.scopes, or remove it from requiredScopes.'
    )
  const own = String(publicUrl).replace(/\/$/, '') + loginPath(String(path[1]))
  if (listOf(auth['issuers']).some((each) => treeOf(each)['issuer'] === own))
    report.add([...path, 'issuers'], `has ${own}, which is the login front of the tenant`, 'Remove it.')
}

/** @param auth of a tenant, with `signIn` */
export function checkSignIn(auth: Tree, path: Path, report: Report): void {
  const { issuer, scopes: asked = ['openid'] } = treeOf(auth['signIn'])
  const place = [...path, 'signIn']
  if (auth['login'] !== undefined)
    report.add(place, 'is of no use beside login, where people sign in already', 'Remove one of the two.')
  const isOne = listOf(auth['issuers']).some((each) => treeOf(each)['issuer'] === issuer)
  if (!isOne || placeholderOf(String(issuer)) !== undefined)
    report.add(
      [...place, 'issuer'],
      'is none of the issuers of the tenant, so that nobody who signs in there could call',
      'Name one of auth.issuers, one without a placeholder.'
    )
  if (!listOf(asked).includes('openid'))
    report.add([...place, 'scopes'], 'has no openid', 'Add it: nobody can sign in without.')
}
