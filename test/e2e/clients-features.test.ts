// Resources, prompts, completion, logging and changed lists of real servers, as a host sees them through one endpoint.

import t from 'tap'
import { until } from '../kit/until.ts'
import { forEverySdk } from './kit/stores-and-sdks.ts'
import { everythingOverStdio, realUpstreams } from './kit/real-servers.ts'
import { direct } from './kit/sdk.ts'

const [upstreams, everything] = await Promise.all([
  realUpstreams(t),
  direct(t, everythingOverStdio.command, everythingOverStdio.args)
])

await forEverySdk(t, { upstreams }, async (t, { client, again, next }) => {
  for (const upstream of ['everything', 'remote']) {
    const wrapped = (uri: string): string => `gatehouse://${upstream}/${uri}`

    await t.test(`a listed resource of ${upstream} is read`, async (t) => {
      const uri = 'demo://resource/static/document/features.md'
      const own = await everything.readResource({ uri })
      t.same(await client.readResource({ uri: wrapped(uri) }), {
        contents: own.contents.map((content) => ({ ...content, uri: wrapped(uri) }))
      })
    })

    await t.test(
      `a resource of a template of ${upstream} is read; one that is not there is an error of the server`,
      async (t) => {
        const uri = wrapped('demo://resource/dynamic/text/42')
        t.match(await client.readResource({ uri }), {
          contents: [{ uri, mimeType: 'text/plain', text: /^Resource 42: / }]
        })
        const missing = 'demo://resource/dynamic/nothing'
        const { code } = await everything.readResource({ uri: missing }).then(
          () => ({ code: undefined }),
          (error: { code: number }) => error
        )
        t.type(code, 'number')
        await t.rejects(client.readResource({ uri: wrapped(missing) }), { code })
      }
    )

    await t.test(`prompts of ${upstream} are filled in`, async (t) => {
      const given = { name: 'args-prompt', arguments: { city: 'Zürich', state: 'ZH' } }
      t.same(await client.getPrompt({ ...given, name: `${upstream}__args-prompt` }), await everything.getPrompt(given))
      const embedding = await client.getPrompt({
        name: `${upstream}__resource-prompt`,
        arguments: { resourceType: 'Text', resourceId: '3' }
      })
      t.match(embedding.messages, [
        { role: 'user' },
        { role: 'user', content: { type: 'resource', resource: { uri: wrapped('demo://resource/dynamic/text/3') } } }
      ])
      await t.rejects(client.getPrompt({ name: `${upstream}__args-prompt`, arguments: {} }), { code: -32602 })
    })

    await t.test(`arguments of prompts and templates of ${upstream} are completed`, async (t) => {
      const ref = { type: 'ref/prompt' as const, name: `${upstream}__completable-prompt` }
      const department = await client.complete({ ref, argument: { name: 'department', value: 'S' } })
      t.same(department.completion.values, ['Sales', 'Support'])
      const name = await client.complete({
        ref,
        argument: { name: 'name', value: '' },
        context: { arguments: { department: 'Sales' } }
      })
      t.same(name.completion.values, ['David', 'Eve', 'Frank'], 'with the arguments given so far')
      const template = await client.complete({
        ref: { type: 'ref/resource', uri: wrapped('demo://resource/dynamic/text/{resourceId}') },
        argument: { name: 'resourceId', value: '9' }
      })
      t.same(template.completion.values, ['9'])
    })

    await t.test(
      `a list that changes at ${upstream} is reported on the GET stream, to the session that changed it`,
      async (t) => {
        const other = await again()
        const name = `${upstream}-${crypto.randomUUID()}.gz`
        const uri = wrapped(`demo://resource/session/${name}`)
        const listed = async (of: typeof client): Promise<boolean> =>
          (await of.listResources()).resources.some((resource) => resource.uri === uri)
        t.notOk(await listed(client))
        const changed = next(
          'the list of resources changed',
          ({ method }) => method === 'notifications/resources/list_changed'
        )
        await client.callTool({
          name: `${upstream}__gzip-file-as-resource`,
          arguments: { name, data: 'data:text/plain,hello', outputType: 'resourceLink' }
        })
        await changed
        await until('the resource is listed', () => listed(client))
        t.match(await client.readResource({ uri }), { contents: [{ uri, mimeType: 'application/gzip' }] })
        t.notOk(await listed(other.client), 'the process or upstream session of another one knows nothing of it')
      }
    )

    // After the test above it is certain that every stream from there to here is open.
    await t.test(`log messages of ${upstream} arrive with its name from the level that was set`, async (t) => {
      await client.setLoggingLevel('debug')
      const message = next(
        'a log message',
        ({ method, params }) => method === 'notifications/message' && params?.['logger'] === upstream
      )
      await client.callTool({ name: `${upstream}__toggle-simulated-logging`, arguments: {} })
      t.match((await message).params, {
        level: /^(debug|info|notice|warning|error|critical|alert|emergency)$/,
        data: /-?[Ll]evel[ -]message/
      })
      await client.callTool({ name: `${upstream}__toggle-simulated-logging`, arguments: {} })
    })
  }

  await t.test('a resource of memory is read', async (t) => {
    const uri = 'gatehouse://memory/memory://knowledge-graph'
    t.match(await client.readResource({ uri }), {
      contents: [{ uri, mimeType: 'application/json', text: /"entities"/ }]
    })
  })

  await t.test('a resource and a prompt of nobody are unknown', async (t) => {
    await t.rejects(client.readResource({ uri: 'gatehouse://nobody/demo://x' }), { code: -32002 })
    await t.rejects(client.getPrompt({ name: 'nobody__simple-prompt' }), { code: -32602 })
  })
})
