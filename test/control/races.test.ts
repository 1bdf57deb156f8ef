// Many writers at once: of those who make the same thing one makes it, and no change is lost.

import t from 'tap'
import { adminGateway, adminSection, adminCall } from '../kit/admin.ts'
import { hash } from 'node:crypto'

t.test('of a hundred that make one tenant one makes it, and each change of it follows the one before', async (t) => {
  const keys = Array.from({ length: 10 }, (_, at) => `gha_${hash('sha256', `race ${at}`, 'base64url')}`)
  const admin = {
    ...adminSection,
    keys: keys.map((key, at) => ({ name: `racer-${at}`, role: 'platform-admin', sha256: hash('sha256', key) }))
  }
  const { adminUrl } = await adminGateway(t, { upstreams: {}, top: { admin } })
  const send = (at: number, method: string, headers: Record<string, string>, body: unknown) =>
    adminCall(adminUrl, method, '/v1/tenants/initech', { key: keys[at % keys.length] ?? '', headers, body })
  const made = await Promise.all(
    Array.from({ length: 100 }, (_, at) =>
      send(at, 'PUT', { 'If-None-Match': '*' }, { auth: {}, upstreams: {}, origins: [`https://a${at}.example`] })
    )
  )
  const statuses = made.map(({ status }) => status)
  t.equal(statuses.filter((status) => status === 201).length, 1)
  t.equal(statuses.filter((status) => status === 412).length, 99, JSON.stringify(statuses))
  const etag = String(made.find(({ status }) => status === 201)?.headers['etag'])
  const changed = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      send(at, 'PATCH', { 'If-Match': etag }, { origins: [`https://b${at}.example`] })
    )
  )
  t.equal(changed.filter(({ status }) => status === 200).length, 1)
  t.equal(changed.filter(({ status }) => status === 412).length, 19)
})
