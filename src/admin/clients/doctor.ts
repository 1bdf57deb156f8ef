// Examines the way of a host to an endpoint, from the gateway: its public URL and the issuers of the tenant, and no
// other server.

import type { Static } from 'typebox'
import { createEgressGuard, type EgressLimits } from '../../egress/guard.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { catalogue, Diagnosis } from '../../hosts/doctor/catalogue.ts'
import { examine } from '../../hosts/doctor/examine.ts'
import { hopNames, type HopName } from '../../hosts/doctor/misconfiguration.ts'
import { administrators, AdminStream, defineRoute } from '../route.ts'
import { createPlaces, credentialSchema, namedEndpoint, ownListener } from './own-way.ts'

const maxExaminations = 4
/** The longest time of one exchange, in milliseconds. */
const examinedMs = 10_000

const hopText = Type.String({ description: 'Name of the hop, as in [doctor.md](doctor.md).' })

const Examined = closedObject({
  url: Type.String({ description: 'The URL that was examined, the one for hosts.' }),
  hops: Type.Array(closedObject({ hop: hopText, text: Type.String({ description: 'What was seen.' }) }), {
    description: 'The hops that work, in the order in which a host passes them.'
  }),
  fault: Type.Union(
    [
      closedObject({
        code: Type.String({ description: 'Code of the fault, as in [doctor.md](doctor.md).' }),
        hop: hopText,
        side: Type.String({ description: 'Who has to act.' }),
        problem: Type.String(),
        remedy: Type.String()
      }),
      Type.Null()
    ],
    { description: 'The first hop that fails. null: all hops that were tried work.' }
  ),
  untried: Type.String({ description: 'What was not tried, and why. Empty: everything was tried.' })
})

const places = createPlaces(maxExaminations, 'Too many endpoints are being examined.')

export const doctorRoute = defineRoute(
  {
    method: 'POST',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/doctor',
    isSafe: true,
    roles: administrators,
    summary:
      'Examines, from the machine of the gateway, the steps of a host to the public URL of an endpoint, and says ' +
      'for the first one that fails who has to act. It sends requests to that URL and to the issuers of the tenant ' +
      'only.',
    body: closedObject({
      credential: credentialSchema('with which a session is tried, too'),
      origin: Type.Optional(
        Type.String({
          maxLength: 512,
          pattern: '^[\\x21-\\x7e]+$',
          patternErrorMessage: 'must be an origin, such as https://example.com',
          description: 'Web origin of a host that runs in a browser.'
        })
      )
    }),
    response: Examined,
    events: '`event: hop` for each hop that works, then one `event: answer`, whose `data` is the answer without events.'
  },
  ({ tenant, params, body: { credential, origin }, wantsEvents }, services) => {
    const { path } = namedEndpoint(tenant, params['endpoint'] ?? '')
    const { publicUrl } = ownListener(services)
    const url = `${publicUrl}${path}`
    const options = { url, token: credential, origin, timeoutMs: examinedMs, version: services.version }
    const leave = places.take(tenant.id)
    async function run(tell: (hop: string, text: string) => void): Promise<Static<typeof Examined>> {
      const hops: Array<{ hop: string; text: string }> = []
      const passed = (hop: HopName, text: string): void => {
        hops.push({ hop: hopNames[hop], text })
        tell(hopNames[hop], text)
      }
      try {
        const told = { passed, browse() {}, waitMs: 0, ...wayOf(tenant, publicUrl, services.snapshot().egress) }
        return { url, hops, fault: null, untried: await examine(options, told) }
      } catch (error) {
        if (!(error instanceof Diagnosis)) throw error
        const { code, message: problem, remedy } = error
        const { hop, side } = catalogue[code]
        return { url, hops, fault: { code, hop: hopNames[hop], side, problem, remedy }, untried: '' }
      } finally {
        leave()
      }
    }
    if (!wantsEvents) return run(() => {})
    return new AdminStream((send, end) => {
      void run((hop, text) => send('hop', JSON.stringify({ hop, text })))
        .then(
          (answer) => send('answer', JSON.stringify(answer)),
          (err: unknown) => services.log.error({ err }, 'an examination failed by a fault of the gateway')
        )
        .finally(end)
      return () => {}
    }, leave)
  }
)

/** Limits where requests go: not to URLs that a response names, nor, for a tenant-admin, into the internal network. */
function wayOf({ id, auth }: Tenant, publicUrl: string, egress: EgressLimits) {
  const own = new URL(publicUrl).origin
  const guard = createEgressGuard(egress)
  const origins = new Set([own, ...auth.issuers.map(({ issuer }) => new URL(issuer).origin)])
  const publicHosts = new Set(auth.issuers.flatMap((issuer) => issuer.publicHosts ?? []))
  const isGuarded = ({ hostname, origin }: URL): boolean => publicHosts.has(hostname) && origin !== own
  return {
    mayAsk(url: URL): boolean {
      if (!origins.has(url.origin)) return false
      try {
        if (isGuarded(url)) guard.check(url)
        return true
      } catch {
        return false
      }
    },
    guardedFor: (url: URL) => (isGuarded(url) ? { guard, owner: id } : undefined)
  }
}
