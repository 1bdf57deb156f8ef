// Attack: the same token in another spelling, by the unused bits of base64url, passes a list of revoked tokens, a cache
// or a log that knows only the first one.

import { webcrypto } from 'node:crypto'
import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** @returns what differs in the unused bits of the last character */
const othersOf = (part: string): string[] =>
  [...alphabet]
    .map((character) => part.slice(0, -1) + character)
    .filter((each) => each !== part && Buffer.from(each, 'base64url').equals(Buffer.from(part, 'base64url')))

t.test('a token is accepted in one spelling only', async (t) => {
  const { url, bearer } = await acmeGateway(t)
  const token = await bearer('JWT')
  const status = async (spelling: string): Promise<number> => {
    const headers = { ...jsonHeaders, authorization: `Bearer ${spelling}` }
    return (await send(url(), { headers, body: initializeBody() })).status
  }
  const signature = token.split('.')[2] ?? ''
  const others = othersOf(signature)
  t.ok(others.length > 0, 'there are other spellings of the very same bytes')
  const spelled = (each: string): string => token.slice(0, -signature.length) + each
  for (const each of others) t.equal(await status(spelled(each)), 401, `before it was seen: …${each.slice(-1)}`)
  t.equal(await status(token), 200, 'positive control')
  for (const each of others) t.equal(await status(spelled(each)), 401, `after it was seen: …${each.slice(-1)}`)
  t.equal(await status(`${token}A`), 401, 'a single character behind it holds no byte')
})

t.test('so are its header and its payload, even where the issuer itself signed another spelling', async (t) => {
  const { url, issuer } = await acmeGateway(t)
  const { kid, privateKey } = issuer.key
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iss: issuer.issuer, aud: url(), sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
  /** Spaces at its end, so that its last character has unused bits; and bytes that the alphabets spell differently. */
  const encoded = (value: object): string => {
    const text = JSON.stringify({ ...value, odd: '>>>>???' })
    return Buffer.from(text + ' '.repeat((4 - (text.length % 3)) % 3)).toString('base64url')
  }
  const [header, payload] = [encoded({ alg: 'ES256', kid, typ: 'at+jwt' }), encoded(claims)]
  const signed = async (by: string): Promise<string> => {
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
    return Buffer.from(await webcrypto.subtle.sign(algorithm, privateKey, Buffer.from(by))).toString('base64url')
  }
  const present = async (signingInput: string, signedInput: string) => {
    const authorization = `Bearer ${signingInput}.${await signed(signedInput)}`
    const { status, json } = await send(url(), { headers: { ...jsonHeaders, authorization }, body: initializeBody() })
    return [status, json.error?.data?.refusal]
  }
  const canonical = `${header}.${payload}`
  const spellings = (part: string): Array<readonly [spelling: string, refusal: string]> => [
    ...othersOf(part).map((each) => [each, 'malformed'] as const),
    // No JWT, and so it would have to be a key.
    [part.replaceAll('-', '+').replaceAll('_', '/'), 'unknown_key'],
    // RFC 6750 section 2.1: no credential has it but at its end.
    [`${part}==`, 'syntax']
  ]
  const others = [
    ...spellings(header).map(([each, refusal]) => ({ part: each, token: `${each}.${payload}`, refusal })),
    ...spellings(payload).map(([each, refusal]) => ({ part: each, token: `${header}.${each}`, refusal }))
  ]
  t.equal(new Set(others.map(({ token }) => token)).add(canonical).size, 2 * (15 + 2) + 1)
  for (const when of ['before it was seen', 'after it was seen']) {
    for (const { part, token, refusal } of others) {
      t.same(await present(token, token), [401, refusal], `${when}, signed so: …${part.slice(-16)}`)
      t.same(await present(token, canonical), [401, refusal], `${when}, respelled: …${part.slice(-16)}`)
    }
    t.same(await present(canonical, canonical), [200, undefined], 'positive control')
  }
})
