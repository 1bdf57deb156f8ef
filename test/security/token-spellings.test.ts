// Attack: the same token in another spelling, by the unused bits of base64url, passes a list of revoked tokens, a cache
// or a log that knows only the first one.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

t.test('a token is accepted in one spelling only', async (t) => {
  const { url, bearer } = await acmeGateway(t)
  const token = await bearer('JWT')
  const status = async (spelling: string): Promise<number> => {
    const headers = { ...jsonHeaders, authorization: `Bearer ${spelling}` }
    return (await send(url(), { headers, body: initializeBody() })).status
  }
  const signature = token.split('.')[2] ?? ''
  const last = alphabet.indexOf(signature.at(-1) ?? '')
  const others = [...alphabet]
    .map((character) => signature.slice(0, -1) + character)
    .filter((each) => each !== signature && Buffer.from(each, 'base64url').equals(Buffer.from(signature, 'base64url')))
  t.ok(last >= 0 && others.length > 0, 'there are other spellings of the very same bytes')
  const spelled = (each: string): string => token.slice(0, -signature.length) + each
  for (const each of others) t.equal(await status(spelled(each)), 401, `before it was seen: …${each.slice(-1)}`)
  t.equal(await status(token), 200, 'positive control')
  for (const each of others) t.equal(await status(spelled(each)), 401, `after it was seen: …${each.slice(-1)}`)
  t.equal(await status(`${token}A`), 401, 'a single character behind it holds no byte')
})
