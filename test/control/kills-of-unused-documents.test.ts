// A process that cannot use the newest document of a tenant takes kill switches for what stands in it, and for what it
// goes on with itself.

import t from 'tap'
import { adminCall, adminSection, type AdminCall } from '../kit/admin.ts'
import { modernRequest } from '../kit/modern-client.ts'
import type { Served } from '../kit/process.ts'
import { replicas } from '../kit/replicas.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const keys = { old: 'gh_key_of_before_0123456789', fresh: 'gh_key_of_now_0123456789' }
const path = '/v1/tenants/initech'
const headers = { 'If-Match': '*' }

/** The admin API of one process. */
async function adminOf(node: Served) {
  const { adminUrl } = await node.logged('listening', ({ msg }) => msg === 'listening')
  return (method: string, target: string, call?: AdminCall) => adminCall(String(adminUrl), method, target, call)
}

async function listedAt({ url }: Served, token: string) {
  const { status, json } = await modernRequest(`${url}/t/initech/mcp`, 'tools/list', {}, { token })
  const names = ((json.result?.tools ?? []) as Array<{ name: string }>).map(({ name }) => name.split('__', 1).join())
  return { status, prefixes: [...new Set(names)].toSorted((one, other) => (one < other ? -1 : 1)) }
}

t.test('what only the newest document has is stopped by a process that cannot use that document', async (t) => {
  const upstreams = await Promise.all([startUpstream(), startUpstream(), startUpstream()])
  t.teardown(() => Promise.all(upstreams.map((each) => each.close())))
  const [first, second, third] = upstreams.map(({ url }) => ({ url }))
  const { nodes } = await replicas(t, { upstreams: {}, top: { admin: adminSection } }, [
    { env: { ONLY_AT_ONE: 'localhost' } },
    {}
  ])
  const [one, two] = nodes as [Served, Served]
  const [atOne, atTwo] = await Promise.all([adminOf(one), adminOf(two)])
  const key = (name: keyof typeof keys) => ({ name, key: keys[name] })
  const before = { auth: { keys: [key('old')] }, upstreams: { gone: first, stays: second } }
  t.equal((await atOne('PUT', path, { body: before })).status, 201)
  await until('it is served at both', async () => (await listedAt(two, keys.old)).prefixes.length === 2)

  const secret = { ...second, headers: { 'X-Key': '${ONLY_AT_ONE}' } }
  const after = {
    auth: { keys: [key('old'), key('fresh')] },
    upstreams: { stays: secret, added: third, hidden: { url: 'http://${ONLY_AT_ONE}:1/mcp' } }
  }
  t.equal((await atOne('PUT', path, { body: after, headers })).status, 200)
  await two.logged('it cannot be used', ({ msg }) => /cannot be used at this process/.test(String(msg)))
  await until('the new key and upstream are there', async () =>
    (await listedAt(one, keys.fresh)).prefixes.includes('added')
  )
  t.match((await listedAt(two, keys.old)).prefixes, ['gone', 'stays'], 'the other one goes on as it was')

  for (const what of ['upstreams/nothing', 'keys/nobody', 'tools/nothing/echo?force=true'])
    t.equal((await atTwo('PUT', `${path}/kills/${what}`)).status, 404, what)
  for (const what of ['upstreams/added', 'upstreams/hidden', 'keys/fresh', 'upstreams/gone', 'tools/added/echo']) {
    const { status, text } = await atTwo('PUT', `${path}/kills/${what}?force=true`)
    t.equal(status, 201, `${what}: ${text}`)
  }
  await until('the key is stopped', async () => (await listedAt(one, keys.fresh)).status === 403)
  t.same(await listedAt(one, keys.old), { status: 200, prefixes: ['stays'] })
  t.same(await listedAt(two, keys.old), { status: 200, prefixes: ['stays'] })

  const renamed = { upstreams: { again: third } }
  t.equal((await atOne('PATCH', path, { body: renamed, headers })).status, 200)
  const told = (await atOne('GET', `${path}/kills`)).json as { items: Array<{ upstream?: string; also: string[] }> }
  t.same(told.items.find(({ upstream }) => upstream === 'added')?.also, ['again'], 'where it leads was kept')
})
