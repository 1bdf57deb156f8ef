// Groups and roles of a person are those that the provider says now, wherever it says them, and whom it knows no more
// is out.

import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { browser } from '../kit/browser.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { moveClock } from '../kit/moving-clock.ts'
import { begin, logIn, loginGateway, redirectUri, refresh, register, use } from './kit.ts'

/** It goes on from one person to the next. */
let minutes = 0

const aboutGroups = {
  default: 'allow',
  rules: [{ name: 'no-x', effect: 'deny', who: { groups: ['x'] }, what: { kinds: ['tool'] } }]
}

/** A person with a host that refreshes its token each minute. */
async function signedIn(t: Test, front: Awaited<ReturnType<typeof loginGateway>>) {
  let last = await logIn(front, front.url())
  t.teardown(() => moveClock(0))
  return {
    said: decodeJwt(last.body.access_token),
    async after() {
      minutes += 1
      moveClock(minutes * 60_000)
      const answer = await refresh(front, last)
      if (answer.status === 200) last = { ...last, ...answer }
      return { ...answer, said: answer.status === 200 ? decodeJwt(answer.body.access_token) : answer.body }
    }
  }
}

t.test('what ID tokens leave out is had from userinfo, at each refresh', async (t) => {
  const front = await loginGateway(t, { of: { rolesClaim: 'realm_access.roles' } })
  front.provider.userinfoOnly.add('groups').add('realm_access')
  front.provider.claims = { realm_access: { roles: ['reader'] } }
  const { said, after } = await signedIn(t, front)
  t.match(said, { groups: ['staff'], roles: ['reader'] })
  front.provider.groups.set('ada', ['admins'])
  t.match((await after()).said, { groups: ['admins'], roles: ['reader'] })
  front.provider.hasIdTokens = false
  front.provider.claims = {}
  front.provider.groups.set('ada', [])
  t.match((await after()).said, { groups: [], roles: [] }, 'where there is no ID token at a refresh, too')
  front.provider.isUserinfoClosed = true
  t.match(await after(), { status: 400, said: { error: 'invalid_grant' } }, 'whom userinfo does not know is out')
  front.provider.isUserinfoClosed = false
  t.equal((await after()).status, 400, 'and stays out until they sign in')
  front.provider.hasIdTokens = true
  t.equal((await logIn(front, front.url())).status, 200)
})

t.test('who does not want userinfo to be asked has what ID tokens say', async (t) => {
  const front = await loginGateway(t, { of: { userinfo: false } })
  front.provider.userinfoOnly.add('roles')
  front.provider.claims = { roles: ['reader'] }
  front.provider.isUserinfoClosed = true
  t.match((await signedIn(t, front)).said, { groups: ['staff'], roles: [] })
})

t.test('a provider whose userinfo cannot be asked lets nobody in with half of their groups', async (t) => {
  const front = await loginGateway(t)
  front.provider.isUserinfoClosed = true
  const { clientId } = await register(front)
  t.equal((await browser().go(begin(front, clientId), redirectUri)).url.searchParams.get('error'), 'server_error')
  front.provider.claims = { roles: [] }
  t.equal((await logIn(front, front.url())).status, 200, 'where the ID token has both, it is not asked')
})

t.test('where the provider wants to see the person, hosts are told to begin anew, and the log says why', async (t) => {
  const front = await loginGateway(t)
  const { after } = await signedIn(t, front)
  const reasons = () =>
    front.log.flatMap(({ msg, reason }) => (/lets somebody in no more/.test(String(msg)) ? [reason] : []))
  for (const error of ['invalid_client', 'invalid_scope', 'temporarily_unavailable']) {
    front.provider.refusal = error
    t.match(await after(), { said: { error: 'temporarily_unavailable' } }, `${error} is no fault of theirs`)
  }
  front.provider.refusal = undefined
  t.equal((await after()).status, 200, 'and nothing was used up')
  t.same(reasons(), [])
  for (const error of ['interaction_required', 'login_required', 'consent_required', 'access_denied', 'mfa_required']) {
    const { after } = await signedIn(t, front)
    front.provider.refusal = error
    t.match(await after(), { status: 400, said: { error: 'invalid_grant' } }, error)
    t.equal(reasons().at(-1), `the provider answered ${error} (as it was told)`)
    front.provider.refusal = undefined
    t.match(await after(), { status: 400, said: { error: 'invalid_grant' } }, `${error}: until they sign in`)
  }
})

t.test('whose groups cannot be used any more begins anew, and is told why', async (t) => {
  const front = await loginGateway(t, { policy: aboutGroups })
  const many = Array.from({ length: 150 }, (_, n) => `group ${String(n).padStart(30)}`)
  // Each of 36 characters, and of 90 bytes in a token.
  const japanese = Array.from(
    { length: 80 },
    (_, n) => `${String(n).padStart(9)}営業本部第課東京オフィス勤務者全員グループ全国支社`
  )
  const elsewhere = { groups: undefined, _claim_names: { groups: 'src1' } }
  for (const [change, said] of [
    [() => void front.provider.groups.set('ada', many), /150 groups/],
    [() => void front.provider.groups.set('ada', japanese), /80 groups/],
    [() => void (front.provider.claims = elsewhere), /_claim_names/]
  ] as const) {
    front.provider.groups.clear()
    front.provider.claims = {}
    front.provider.groups.set('ada', japanese.slice(0, 40))
    const { after } = await signedIn(t, front)
    t.equal(await use(front.url(), (await after()).body.access_token), 200, 'what can be told is taken at the endpoint')
    front.provider.groups.clear()
    change()
    t.match(await after(), { status: 400, said: { error: 'invalid_grant' } })
    t.ok(front.log.some(({ msg, reason }) => /lets somebody in no more/.test(String(msg)) && said.test(String(reason))))
    const { clientId } = await register(front)
    const { url } = await browser().go(begin(front, clientId), redirectUri)
    t.equal(url.searchParams.get('error'), 'server_error')
    t.match(url.searchParams.get('error_description'), said)
  }
})

t.test('requiredClaims lets in those of whom they hold, as long as they do', async (t) => {
  const front = await loginGateway(t, { of: { requiredClaims: { groups: ['engineering'] } } })
  const { clientId } = await register(front)
  const refused = await browser().go(begin(front, clientId), redirectUri)
  t.match(Object.fromEntries(refused.url.searchParams), { error: 'access_denied' })
  t.ok(front.log.some(({ reason }) => /Its claim groups has no value of requiredClaims/.test(String(reason))))
  front.provider.groups.set('ada', ['staff', 'engineering'])
  const { said, after } = await signedIn(t, front)
  t.match(said, { groups: ['staff', 'engineering'] })
  t.equal((await after()).status, 200)
  front.provider.groups.set('ada', ['staff'])
  t.match(await after(), { status: 400, said: { error: 'invalid_grant' } })
})

t.test('a provider that says nothing at a refresh lets nobody stay of whom requiredClaims has to hold', async (t) => {
  for (const requiredClaims of [{}, { groups: ['engineering'] }]) {
    const front = await loginGateway(t, { of: { userinfo: false, requiredClaims } })
    front.provider.groups.set('ada', ['engineering'])
    const { after } = await signedIn(t, front)
    t.equal((await after()).status, 200, 'the ID token says it')
    front.provider.hasIdTokens = false
    const isOut = 'groups' in requiredClaims
    t.match(await after(), isOut ? { status: 400, said: { error: 'invalid_grant' } } : { status: 200 })
    t.equal(
      front.log.some(({ reason }) => /says nothing of requiredClaims/.test(String(reason))),
      isOut
    )
    front.provider.hasIdTokens = true
    t.equal((await logIn(front, front.url())).status, 200, 'whoever signs in anew is looked at anew')
  }
})

t.test('a rule that denies a group or a role misses nobody who has many, or whose names cannot be read', async (t) => {
  const deny = (name: string, who: object) => ({ name, effect: 'deny', who, what: { kinds: ['tool'] } })
  const rules = [deny('no-contractors', { groups: ['contractors'] }), deny('no-interns', { roles: ['interns'] })]
  const of = { rolesClaim: 'realm_access.roles', userinfo: false }
  const front = await loginGateway(t, { policy: { default: 'allow', rules }, of })
  const calls = async (claims: Record<string, unknown>) => {
    front.provider.claims = claims
    const { body } = await logIn(front, front.url())
    const call = { name: 'files__echo', arguments: { text: 'hello' } }
    const { json } = await modernRequest(front.url(), 'tools/call', call, { token: body.access_token })
    return { scopes: body['scope'], mayCall: json['error'] === undefined }
  }
  const names = (count: number, last: string) => [...Array.from({ length: count - 1 }, (_, n) => `n${n}`), last]
  const roles = (value: unknown) => ({ realm_access: { roles: value } })
  t.match(await calls({ groups: names(256, 'staff'), ...roles(['reader']) }), { mayCall: true })
  t.match(await calls({ groups: names(256, 'contractors') }), { mayCall: false }, 'the last of as many as can be told')
  t.match(await calls({ groups: ['contractors'] }), { mayCall: false })
  t.match(await calls(roles(['reader', 'interns'])), { mayCall: false }, 'a role within another claim')
  t.match(await calls(roles('interns')), { mayCall: false })
  for (const [claims, said] of [
    [{ groups: names(257, 'contractors') }, /Its claim groups has 257 names/],
    [roles(names(257, 'interns')), /Its claim realm_access\.roles has 257 names/],
    [{ groups: ['contractors\n'] }, /Its claim groups is no list of names/],
    [{ groups: ['c'.repeat(513)] }, /Its claim groups is no list of names/],
    [{ groups: { contractors: true } }, /Its claim groups is no list of names/],
    [{ groups: undefined, hasgroups: true }, /hasgroups/],
    [{ _claim_names: { realm_access: 'src1' } }, /realm_access\.roles.*_claim_names/]
  ] as const) {
    front.provider.claims = claims
    const { clientId } = await register(front)
    const { url } = await browser().go(begin(front, clientId), redirectUri)
    t.match([url.searchParams.get('error'), url.searchParams.get('error_description')], ['server_error', said])
  }
})

t.test('where no rule is about groups, those that cannot be told are left out, until one is', async (t) => {
  const front = await loginGateway(t, { of: { userinfo: false } })
  const many = Array.from({ length: 300 }, (_, n) => `n${n}`)
  const long = Array.from({ length: 200 }, (_, n) => `group ${String(n).padStart(30)}`)
  const signInWith = async (claims: Record<string, unknown>) => {
    front.provider.claims = claims
    return await logIn(front, front.url())
  }
  for (const [groups, told] of [
    [['staff', { id: 'g1' }, 7, 'a\nb'], ['staff']],
    [{ staff: true }, []],
    [many, many.slice(0, 256)]
  ] as const) {
    const { status, body } = await signInWith({ groups })
    t.equal(status, 200)
    t.match(decodeJwt(body.access_token), { groups: told, roles: [], _claim_names: { groups: 'left-out' } })
    t.equal((decodeJwt(body.access_token)['groups'] as string[]).length, told.length)
    t.equal(await use(front.url(), body.access_token), 200)
  }
  const whole = await signInWith({ groups: ['staff'] })
  t.notOk('_claim_names' in decodeJwt(whole.body.access_token))
  const cut = await signInWith({ groups: long, roles: ['reader'] })
  const said = decodeJwt(cut.body.access_token) as { groups: string[]; roles: string[] }
  t.ok(said.groups.length > 50 && said.groups.length < 150, `${said.groups.length} of 200 in 4,000 bytes`)
  t.equal(await use(front.url(), cut.body.access_token), 200)
  const last = await signInWith({ groups: undefined, _claim_names: { groups: 'src1' } })
  t.equal(await use(front.url(), last.body.access_token), 200)

  const { acme, ...others } = front.config.tenants
  front.reload({ ...front.config, tenants: { ...others, acme: { ...(acme as object), policy: aboutGroups } } })
  for (const { body } of [cut, last])
    t.equal(await use(front.url(), body.access_token), 401, 'also of tokens from before')
  t.equal(await use(front.url(), whole.body.access_token), 200)
  t.match(await refresh(front, last), { status: 400, body: { error: 'invalid_grant' } })
})
