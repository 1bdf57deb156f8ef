// What stands in for Grafana in `npm run containers`, where its image cannot be had: it takes the files that Grafana is
// given, from where Grafana takes them, and answers the questions of the test. It shows nothing.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

interface Provider {
  readonly type: string
  readonly options: { readonly path: string }
}

const provisioning = '/etc/grafana/provisioning'
// The image has the library, and no other file of this project.
const { parse } = (await import('/usr/local/lib/node_modules/yaml/dist/index.js' as string)) as {
  parse: (text: string) => Record<string, unknown>
}
const provisioned = (kind: string): Array<Record<string, unknown>> =>
  readdirSync(join(provisioning, kind)).map((name) => parse(readFileSync(join(provisioning, kind, name), 'utf8')))

const dashboards = new Map<string, unknown>()
for (const { providers } of provisioned('dashboards'))
  for (const { type, options } of providers as readonly Provider[]) {
    if (type !== 'file') throw new Error(`a provider of type ${type}`)
    for (const name of readdirSync(options.path)) {
      const dashboard = JSON.parse(readFileSync(join(options.path, name), 'utf8')) as { uid: string }
      dashboards.set(dashboard.uid, dashboard)
    }
  }
const sources = provisioned('datasources').flatMap(
  ({ datasources }) => datasources as Array<{ uid: string; url: string }>
)
// Its database.
writeFileSync('/var/lib/grafana/grafana.db', '')

const server = createServer(({ method, url = '/' }, response) => {
  const [, uid, query] =
    /^\/api\/(?:dashboards\/uid\/([\w-]+)|datasources\/proxy\/uid\/[\w-]+\/(api\/v1\/query\?.*))$/.exec(url) ?? []
  const answer = (status: number, body: unknown): unknown =>
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  const dashboard = dashboards.get(uid ?? '')
  const source = sources.find(({ uid: name }) => url.startsWith(`/api/datasources/proxy/uid/${name}/`))
  if (method !== 'GET') answer(403, { message: 'nobody may change anything' })
  else if (url === '/api/health') answer(200, { database: 'ok', version: 'stand-in' })
  else if (dashboard !== undefined) answer(200, { dashboard })
  else if (source !== undefined && query !== undefined)
    fetch(new URL(query, `${source.url}/`)).then(
      async (found) => answer(found.status, await found.json()),
      (error: unknown) => answer(502, { message: String(error) })
    )
  else answer(404, { message: 'not found' })
})
server.listen(3000)
process.on('SIGTERM', () => process.exit(0))
