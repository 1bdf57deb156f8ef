// An MCP server at a URL, looked at before anybody adds it: what stands between it and the gateway, and what it offers.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { UpstreamSchema } from '../../config/schema/upstream.ts'
import { isTree } from '../../config/shape.ts'
import { Type } from '../../config/schema/type.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import { shownDocument } from '../../control/document/tenant-document.ts'
import { hopNames, type HopName } from '../../hosts/doctor/misconfiguration.ts'
import { tenantId, upstreamName } from '../../protocol/messages.ts'
import { deadline, steadyClock } from '../../time/clock.ts'
import { recordChange } from '../changes.ts'
import { placeOf } from '../configuration/parts.ts'
import { createPlaces, ownListener } from '../clients/own-way.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import { administrators, AdminStream, defineRoute, type AdminRequest, type AdminServices } from '../route.ts'
import { discoverServer } from './server-hops.ts'
import { Stopped } from './stopped.ts'

const maxDiscoveries = 4
const maxDiscoveryMs = 60_000
/** The most tools that are listed by name. */
const maxToolNames = 200

const hopText = Type.String({ description: 'Name of the hop, as in [doctor.md](doctor.md).' })

const Discovered = closedObject({
  url: Type.String({
    description: 'Origin of the URL. The path and the query are left out, since they may hold secrets.'
  }),
  hops: Type.Array(closedObject({ hop: hopText, text: Type.String({ description: 'What was seen.' }) }), {
    description: 'The hops that work, in the order in which the gateway passes them.'
  }),
  fault: Type.Union(
    [closedObject({ code: Type.String(), hop: hopText, problem: Type.String(), remedy: Type.String() }), Type.Null()],
    { description: 'The first hop that fails. null: all hops that were tried work.' }
  ),
  asksPeople: Type.Boolean({
    description:
      'Whether the server wants a token of each person: add it with `auth: {"type": "user"}`, and people connect ' +
      'their accounts.'
  }),
  tools: Type.Union([Type.Array(Type.String()), Type.Null()], {
    description: `Names of its tools, ${maxToolNames} at most. null: that is told to nobody who shows it nothing.`
  })
})
type Answer = Static<typeof Discovered>

const places = createPlaces(maxDiscoveries, 'Too many servers are being looked at.')

/** Returns the definition that the server would have if it were added now. @throws ControlError, AdminProblem */
async function definitionOf(request: AdminRequest, { control }: AdminServices): Promise<HttpDefinition> {
  const { body, params, administrator } = request
  const { tenant = '', upstream = '' } = params
  control.checkOwner(tenant)
  if (!isTree(body)) throw new AdminProblem('invalid_request', 'The body is no JSON object.', 'Send one JSON object.')
  const { name, role } = administrator
  const { after } = await control.preview({
    author: { name, role },
    action: 'upstream.discover',
    charge: administrator.charge,
    change(documents) {
      const document = documents.get(tenant)
      if (document === undefined) throw noSuch('tenant')
      return new Map([[tenant, placeOf('upstream', upstream).write(shownDocument(document.tree), body)]])
    }
  })
  const definition = after.tenants.get(tenantId(tenant))?.upstreams.get(upstreamName(upstream))
  if (definition?.type === 'http') return definition
  throw new AdminProblem('invalid_request', 'Only a server at a URL is looked at.', 'Send a "url".')
}

export const discoverRoute = defineRoute(
  {
    method: 'POST',
    path: '/v1/tenants/{tenant}/upstreams/{upstream}/discover',
    isSafe: true,
    tenantMayBeMissing: true,
    roles: administrators,
    summary:
      'Examines the MCP server at a URL with this configuration, and adds nothing: name resolution, connection and ' +
      'TLS, whether and where it wants a login, what it is and what it lists. For a tenant-admin only public ' +
      'addresses are reached, as for an upstream.',
    body: UpstreamSchema,
    validatesBody: true,
    response: Discovered,
    events: '`event: hop` for each that is well, then one `event: answer`, whose `data` is the answer without events.'
  },
  async (request, services) => {
    const { params, wantsEvents, administrator, address } = request
    const definition = await definitionOf(request, services)
    const { snapshot, pool, held, version, log } = services
    const tenant = tenantId(params['tenant'] ?? '')
    const { publicUrl } = ownListener(services)
    const leave = places.take(tenant)
    const { origin } = new URL(definition.url)
    await recordChange(services, {
      actor: administrator.name,
      role: administrator.role,
      action: 'upstream.discover',
      tenant,
      target: `${definition.name} ${origin}`,
      before: undefined,
      after: undefined,
      address
    })
    async function run(tell: (hop: string, text: string) => void, left?: AbortSignal): Promise<Answer> {
      const hops: Array<{ hop: string; text: string }> = []
      const passed = (name: HopName, text: string): void => {
        hops.push({ hop: hopNames[name], text })
        tell(hopNames[name], text)
      }
      const limit = deadline(steadyClock, maxDiscoveryMs, left)
      const told = { url: origin, hops, fault: null, tools: null }
      try {
        const { listing, asksPeople } = await discoverServer({
          definition,
          egress: snapshot().egress,
          publicUrl,
          clientInfo: { name: 'gatehouse', version },
          connect: pool.connect,
          memory: held.memory.share(tenant, 'discovery'),
          signal: limit.signal,
          passed
        })
        const names = listing?.tools.slice(0, maxToolNames).map(({ name }) => String(name))
        return { ...told, asksPeople, tools: names ?? null }
      } catch (error) {
        if (!(error instanceof Stopped)) throw error
        const { code, hop, message: problem, remedy } = error
        const asksPeople = code === 'no_registration'
        return { ...told, asksPeople, fault: { code, hop: hopNames[hop], problem, remedy } }
      } finally {
        limit.close()
        leave()
      }
    }
    if (!wantsEvents) return await run(() => {})
    return new AdminStream((send, end) => {
      const left = new AbortController()
      void run((hop, text) => send('hop', JSON.stringify({ hop, text })), left.signal)
        .then(
          (answer) => send('answer', JSON.stringify(answer)),
          (err: unknown) => log.error({ err }, 'a discovery failed by a fault of the gateway')
        )
        .finally(end)
      return () => left.abort()
    }, leave)
  }
)
