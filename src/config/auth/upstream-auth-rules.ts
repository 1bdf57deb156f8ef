// Rules between what an upstream is shown of who calls and what else its definition says.

import type { Path, Report } from '../problems.ts'
import type { Tree } from '../shape.ts'

export function checkUpstreamAuth(auth: Tree, headers: Tree, path: Path, report: Report): void {
  const { type, clientSecret, privateKey, issuer, tokenUrl } = auth
  const place = [...path, 'auth']
  const authorization = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization')
  if (type !== undefined && authorization !== undefined)
    report.add([...path, 'headers', authorization], 'is what auth writes', 'Remove it, or remove auth.')
  if (type !== 'clientCredentials') return
  if ((clientSecret === undefined) === (privateKey === undefined))
    report.add(
      place,
      clientSecret === undefined ? 'has neither clientSecret nor privateKey' : 'has both clientSecret and privateKey',
      'Give one of the two: it proves who the client is.'
    )
  if (issuer !== undefined && tokenUrl !== undefined)
    report.add(
      place,
      'has both issuer and tokenUrl',
      'Remove one of the two: tokenUrl is for servers without metadata.'
    )
}
