// What people do at a login front, and what they are refused there, is in the audit log.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import { type AuditRecord, recordsIn } from '../audit/kit.ts'
import { begin, logIn, loginGateway, redirectUri, refresh, register, tokens } from './kit.ts'

t.test('sign-ins, consents and refusals are records, and hold no secret', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const front = await loginGateway(t, { top: { audit: { store: false, file } } })
  const text = (): Promise<string> => readFile(file, 'utf8').catch(() => '')
  const records = async (): Promise<AuditRecord[]> => (await recordsIn(file)).filter(({ kind }) => kind === 'login')
  const before = await logIn(front, front.url())
  const { clientId, code, body } = before
  await refresh(front, before)
  await refresh(front, before)
  const other = await register(front)
  const person = browser()
  await person.press(
    await person.go(begin(front, other.clientId, { resource: front.url() }), redirectUri),
    '/deny',
    redirectUri
  )
  front.provider.person = undefined
  await browser().go(begin(front, other.clientId), redirectUri)
  await browser().go(begin(front, other.clientId, { resource: 'https://elsewhere.example' }), redirectUri)
  await fetch(`${front.issuer}/callback?code=x&state=y`)
  await tokens(front, { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'made-up' })
  await front.close()
  const by = { kind: 'person', issuer: front.issuer, subject: 'ada' }
  const [signedIn, allowed, ...rest] = await records()
  t.match(signedIn, {
    action: 'sign-in',
    by,
    decision: 'allowed',
    outcome: 'ok',
    from: '127.0.0.1',
    request: /^[\w-]{36}$/
  })
  const asked = { action: 'consent', by, redirectUri, resource: front.url(), scopes: ['mcp'] }
  t.match(allowed, { ...asked, client: clientId, decision: 'allowed' })
  const refused = { decision: 'denied' }
  t.match(rest, [
    { action: 'grant-ended', client: clientId },
    { ...refused, action: 'token', by, client: clientId, outcome: /^invalid_grant \(refresh token already used\)/ },
    { action: 'sign-in', by },
    { ...asked, ...refused, client: other.clientId, outcome: 'the person did not allow it' },
    { ...refused, action: 'sign-in', by: undefined, outcome: 'the provider answered access_denied (no)' },
    { ...refused, action: 'authorization', client: other.clientId, outcome: /^invalid_target/ },
    { ...refused, action: 'sign-in', outcome: /^expired, used already/ },
    { ...refused, action: 'token', client: clientId, outcome: /^invalid_grant/ }
  ])
  for (const secret of [code, body.access_token, String(body['refresh_token']), 'ada@example.com'])
    t.notOk((await text()).includes(secret))
})

t.test('strangers who are refused do not fill it', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const front = await loginGateway(t, { top: { audit: { store: false, file } } })
  const { clientId } = await register(front)
  for (let n = 0; n < 120; n++)
    await tokens(front, { grant_type: 'refresh_token', client_id: clientId, refresh_token: `made-up-${n}` })
  await front.close()
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.includes('"action":"token"'))
  t.ok(lines.length >= 50 && lines.length < 70, String(lines.length))
  t.match(await readFile(file, 'utf8'), /"unrecorded":\d\d/, 'the others are counted')
})
