// The reference page: the OpenAPI document for people, without a key, a script or anything of others.

import { hash } from 'node:crypto'
import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway } from '../kit/admin.ts'

t.test('it has every route, runs and loads nothing, and names no setting', async (t) => {
  const { call } = await adminGateway(t, { upstreams: {} })
  const page = await call('GET', '/reference', { key: null })
  t.equal(page.status, 200)
  t.match(page.headers, { 'content-type': 'text/html; charset=utf-8', 'x-content-type-options': 'nosniff' })
  for (const { method, path } of adminRoutes) t.ok(page.text.includes(`>${method} ${path}</h3>`), `${method} ${path}`)
  const [, style = ''] = /<style>([^]*)<\/style>/.exec(page.text) ?? []
  const policy = String(page.headers['content-security-policy'])
  t.match(policy, /^default-src 'none'; style-src 'sha256-/)
  t.ok(policy.includes(`'sha256-${hash('sha256', style, 'base64')}'`), 'its own style counts')
  t.notMatch(page.text, /<script|<link|<img|src=|style=|\son\w+=|http-equiv|0\.0\.0-test|acme/)
  const again = await call('GET', '/reference', {
    key: null,
    headers: { 'If-None-Match': String(page.headers['etag']) }
  })
  t.equal(again.status, 304)
  const ids = [...page.text.matchAll(/<h3 id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids) t.ok(page.text.includes(`href="#${id}"`), `${id} is linked`)
  t.equal((await call('POST', '/reference', { key: null })).status, 401)
})
