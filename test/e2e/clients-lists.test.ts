// The handshake and the lists of three real servers behind one endpoint, compared with what the servers say themselves.

import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { forEverySdk } from './kit/stores-and-sdks.ts'
import { everythingOverStdio, memoryOverStdio, realUpstreams } from './kit/real-servers.ts'
import { direct } from './kit/sdk.ts'

const pageSize = 4
const without = (tool: Tool, ...members: string[]): Tool =>
  Object.fromEntries(Object.entries(tool).filter(([name]) => !members.includes(name))) as Tool
const names = (entries: ReadonlyArray<{ name: string }>): string[] => entries.map(({ name }) => name)

const memory = memoryOverStdio(t.testdir())
const [upstreams, everything, graph] = await Promise.all([
  realUpstreams(t),
  direct(t, everythingOverStdio.command, everythingOverStdio.args),
  direct(t, memory.command, memory.args, memory.env)
])

await forEverySdk(t, { upstreams, limits: { pageSize } }, async (t, { client, transport, sdk, again }) => {
  await t.test('initialize tells who answers, in which revision, and what it offers', async (t) => {
    t.match(client.getServerVersion(), { name: 'gatehouse', version: '0.0.0-test' })
    t.equal(transport.protocolVersion, sdk.revision)
    t.match(transport.sessionId, /^[\x21-\x7e]{43}$/)
    t.same(client.getServerCapabilities(), {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
      logging: {},
      ...(sdk.revision === '2025-11-25' && { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } })
    })
    const instructions = client.getInstructions() ?? ''
    t.match(instructions, everything.getInstructions() ?? 'none', 'the instructions of an upstream are in there')
    t.match(instructions, 'everything__', 'with the rule of its names')
  })

  await t.test('ping is answered', async (t) => {
    t.same(await client.ping(), {})
  })

  await t.test(
    'tools of all upstreams, prefixed, in the order of the configuration, otherwise as their servers wrote them',
    async (t) => {
      // Icons and execution came with 2025-11-25.
      const known = (tool: Tool): Tool => (sdk.revision === '2025-11-25' ? tool : without(tool, 'icons', 'execution'))
      const own = (await everything.listTools()).tools.map(known)
      const expected = [
        ...own.map((tool) => ({ ...tool, name: `everything__${tool.name}` })),
        ...(await graph.listTools()).tools.map(known).map((tool) => ({ ...tool, name: `memory__${tool.name}` })),
        ...own.map((tool) => ({ ...tool, name: `remote__${tool.name}` }))
      ]
      const { entries, sizes } = await paged(async (cursor) => {
        const { tools, nextCursor } = await client.listTools(cursor)
        return { entries: tools, nextCursor }
      })
      t.same(entries, expected)
      t.ok(
        sizes.slice(0, -1).every((size) => size === pageSize),
        'in pages of limits.pageSize'
      )
      t.equal(sizes.length, Math.ceil(expected.length / pageSize))
    }
  )

  await t.test('the order is the same for another session', async (t) => {
    const other = await again()
    const list = async (of: typeof client): Promise<string[]> => {
      const { entries } = await paged(async (cursor) => {
        const { tools, nextCursor } = await of.listTools(cursor)
        return { entries: tools, nextCursor }
      })
      return names(entries)
    }
    t.same(await list(other.client), await list(client))
    t.not(other.transport.sessionId, transport.sessionId)
  })

  await t.test('prompts of all upstreams that have some', async (t) => {
    const own = names((await everything.listPrompts()).prompts)
    const { entries } = await paged(async (cursor) => {
      const { prompts, nextCursor } = await client.listPrompts(cursor)
      return { entries: prompts, nextCursor }
    })
    t.same(names(entries), [...own.map((name) => `everything__${name}`), ...own.map((name) => `remote__${name}`)])
  })

  await t.test('resources and templates, each under a URI that says whose it is', async (t) => {
    const own = (await everything.listResources()).resources.map(({ uri }) => uri)
    const { entries } = await paged(async (cursor) => {
      const { resources, nextCursor } = await client.listResources(cursor)
      return { entries: resources, nextCursor }
    })
    t.same(
      entries.map(({ uri }) => uri),
      [
        ...own.map((uri) => `gatehouse://everything/${uri}`),
        'gatehouse://memory/memory://knowledge-graph',
        ...own.map((uri) => `gatehouse://remote/${uri}`)
      ]
    )
    const templates = (await everything.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)
    t.same(
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      [
        ...templates.map((uri) => `gatehouse://everything/${uri}`),
        ...templates.map((uri) => `gatehouse://remote/${uri}`)
      ]
    )
  })

  await t.test('a cursor that is not ours is refused', async (t) => {
    await t.rejects(client.listTools({ cursor: 'bm90IG91cnM=' }), { code: -32602 })
  })
})

interface Page<Entry> {
  readonly entries: readonly Entry[]
  readonly nextCursor: string | undefined
}

/** All pages of a list. @returns the entries, and how many stood on each page */
async function paged<Entry>(
  read: (params: { cursor: string } | undefined) => Promise<Page<Entry>>
): Promise<{ entries: Entry[]; sizes: number[] }> {
  const entries: Entry[] = []
  const sizes: number[] = []
  for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
    const page = await read(cursor === undefined ? undefined : { cursor })
    entries.push(...page.entries)
    sizes.push(page.entries.length)
    cursor = page.nextCursor
  }
  return { entries, sizes }
}
