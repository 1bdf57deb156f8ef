// What docker-compose.yml and the Dockerfile say, where no container engine is needed to see it. `npm run containers`
// tries what they do.

import t from 'tap'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..', '..')

interface Service {
  readonly ports?: readonly string[]
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly mem_limit?: string
  readonly pids_limit?: number
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly environment?: Readonly<Record<string, string>>
}

const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
}

t.test('docker-compose.yml publishes the proxy alone, on loopback', async (t) => {
  t.same(
    Object.keys(services).filter((name) => services[name]?.ports !== undefined),
    ['proxy']
  )
  t.equal(services['proxy']?.ports?.length, 2)
  for (const port of services['proxy']?.ports ?? []) t.match(port, /^127\.0\.0\.1:/)
})

t.test(
  'every service has limits, a read-only file system and no capability, and waits for what it needs',
  async (t) => {
    t.ok(Object.keys(services).length >= 7)
    for (const [name, { read_only, cap_drop, mem_limit, pids_limit, depends_on = {} }] of Object.entries(services)) {
      t.match(
        { read_only, cap_drop, mem_limit, pids_limit },
        { read_only: true, cap_drop: ['ALL'], mem_limit: /m$/, pids_limit: Number },
        name
      )
      for (const [other, { condition }] of Object.entries(depends_on))
        t.equal(
          condition,
          other === 'secrets' ? 'service_completed_successfully' : 'service_healthy',
          `${name}: ${other}`
        )
    }
  }
)

t.test('no secret stands in docker-compose.yml', async (t) => {
  for (const [name, { environment = {} }] of Object.entries(services))
    t.same(
      Object.keys(environment).filter((key) => /password|key|token/i.test(key)),
      [],
      name
    )
})

t.test(
  'every image of the Dockerfile that runs has a user without rights, and starts below an init without a shell',
  async (t) => {
    const stages = readFileSync(join(root, 'Dockerfile'), 'utf8')
      .split(/^FROM /m)
      .slice(1)
    const running = stages.filter((stage) => stage.includes('ENTRYPOINT'))
    t.equal(running.length, 3)
    for (const stage of running) {
      const [name = ''] = stage.split('\n')
      t.match(stage, /^USER 1000:1000$/m, name)
      t.match(stage, /^ENTRYPOINT \["\/usr\/bin\/tini", "--", "node", /m, name)
      t.notMatch(stage, /^(?:CMD|ENTRYPOINT|HEALTHCHECK)(?!.*\[).*$/m, name)
    }
    t.match(running.at(-1), /^base AS gateway\n/, 'the gateway is what is built by default')
  }
)
