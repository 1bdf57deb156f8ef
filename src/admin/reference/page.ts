// The reference page at /reference: the OpenAPI document for people, made once from the document itself. It tells what
// docs/admin-api.md tells everybody, so nobody signs in for it; it runs no script and loads nothing.

import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { takesCoding } from './accepted-coding.ts'

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 0 auto; padding: 1rem }
h2 { margin-top: 2.5rem; border-bottom: 1px solid }
h3 { font: 600 1rem/1.5 ui-monospace, monospace; margin: 1.5rem 0 0; overflow-wrap: anywhere }
nav { columns: 20rem } nav a { display: block; font: .85rem/1.6 ui-monospace, monospace; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
pre { overflow: auto; max-height: 24rem; padding: .5rem; border: 1px solid; font-size: .8rem }
summary { cursor: pointer } :focus-visible { outline: 3px solid }
`

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}
/** Escapes a value; what is no text becomes empty. */
const text = (value: unknown): string =>
  (typeof value === 'string' ? value : '').replaceAll(/[&<>"']/g, (each) => escapes[each] ?? '')

const treeOf = (value: unknown): JsonObject => (isObject(value) ? value : {})
const listOf = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.map(treeOf) : [])

const schemaOf = (content: unknown): unknown => treeOf(Object.values(treeOf(content))[0])['schema']

const shown = (title: string, schema: unknown): string =>
  schema === undefined
    ? ''
    : `<details><summary>${title}</summary>` +
      `<pre tabindex="0">${text(JSON.stringify(schema, undefined, 1))}</pre></details>`

function parameters(all: readonly JsonObject[]): string {
  if (all.length === 0) return ''
  const rows = all.map((each) => {
    const schema = treeOf(each['schema'])
    const kind = Array.isArray(schema['enum']) ? schema['enum'].join(', ') : schema['type']
    const byDefault = schema['default'] === undefined ? '' : ` Default: ${JSON.stringify(schema['default'])}.`
    return (
      `<tr><td><code>${text(each['name'])}</code></td><td>${text(each['in'])}</td><td>${text(kind)}</td>` +
      `<td>${text(schema['description'])}${text(byDefault)}</td></tr>`
    )
  })
  const head = ['name', 'in', 'kind', 'meaning'].map((name) => `<th scope="col">${name}</th>`).join('')
  return `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`
}

const idOf = (method: string, path: string): string =>
  `${method}-${path.replaceAll(/[^a-z0-9.]+/gi, '-').replaceAll(/^-|-$/g, '')}`

function section([method, path, operation]: Operation): string {
  const { summary, description, requestBody, responses } = operation
  const { '200': answer, '204': done } = treeOf(responses)

  return [
    `<h3 id="${idOf(method, path)}">${method.toUpperCase()} ${text(path)}</h3>`,
    `<p>${text(summary)}<br><small>${text(description)}</small></p>`,
    parameters(listOf(operation['parameters'])),
    shown('Body', schemaOf(treeOf(requestBody)['content'])),
    shown('Answer', schemaOf(treeOf(answer)['content'])),
    done === undefined ? '' : '<p>Answered by 204, without a body.</p>'
  ].join('\n')
}

type Operation = readonly [method: string, path: string, operation: JsonObject]

/** @param openApi as /openapi.json has it */
function referencePage(openApi: object): string {
  const { paths, components } = openApi as JsonObject
  const operations = Object.entries(treeOf(paths)).flatMap(([path, methods]): Operation[] =>
    Object.entries(treeOf(methods)).map(([method, operation]) => [method, path, treeOf(operation)])
  )
  const links = operations.map(
    ([method, path]) => `<a href="#${idOf(method, path)}">${method.toUpperCase()} ${text(path)}</a>`
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gatehouse admin API</title>
<style>${style}</style>
<h1>Gatehouse admin API</h1>
<p>Every request carries <code>Authorization: Bearer KEY</code>, with an admin key
(<code>gatehouse admin-key new</code>) or a token that is for this API. <code>GET /openapi.json</code> has the same
for programs (OpenAPI 3.1). Refusals are problem details (RFC 9457).</p>
<h2>Routes</h2>
<nav aria-label="Routes">
${links.join('\n')}
</nav>
<main>
<h2>Each of them</h2>
${operations.map(section).join('\n')}
<h2>Problems</h2>
${shown('Problem', treeOf(treeOf(components)['schemas'])['Problem'])}
</main>
</html>
`
}

/**
 * Adds the reference: one page for everybody who reaches the listener, without version and settings; made with the
 * first request.
 */
export function addReference(server: FastifyInstance, openApi: object): void {
  let made: { readonly page: Buffer; readonly zipped: Buffer; readonly etag: string } | undefined

  async function make() {
    const page = Buffer.from(referencePage(openApi))
    made = { page, zipped: await promisify(gzip)(page), etag: `"${hash('sha256', page, 'base64url').slice(0, 22)}"` }
    return made
  }

  server.get('/reference', { config: { isForStrangers: true } }, async (request, reply) => {
    const { page, zipped, etag } = made ?? (await make())
    void reply.headers({ ...pageHeaders, ETag: etag })
    if (request.headers['if-none-match'] === etag) return await reply.code(304).send()
    void reply.type('text/html; charset=utf-8')
    if (!takesCoding('gzip', request.headers['accept-encoding'])) return await reply.send(page)
    return await reply.header('Content-Encoding', 'gzip').send(zipped)
  })
}

/** Headers with which nothing runs, nothing is loaded, and no other style counts. */
const pageHeaders = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy':
    `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; base-uri 'none'; form-action 'none'; ` +
    "frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Accept-Encoding',
  'X-Content-Type-Options': 'nosniff'
}
