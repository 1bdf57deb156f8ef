// Checks whether the target of a kill switch is known, so that a misspelt target is reported; an unknown one may still
// be stopped on purpose.

import { reservedIssuerPrefix } from '../../../config/auth/auth-config.ts'
import { didYouMean } from '../../../config/problems.ts'
import type { Kill } from '../../../config/policy/kill.ts'
import type { Tenant } from '../../../config/snapshot.ts'
import { isLiteral } from '../../../protocol/glob.ts'
import { upstreamName } from '../../../protocol/messages.ts'
import { storedListing } from '../../../relay/catalog/past/past-listings.ts'
import { sessionsLookedAt } from '../../../store/keys.ts'
import type { Administrator } from '../../access.ts'
import { callersToday } from '../../callers/callers.ts'
import { charsOfRecords } from '../../live/sessions.ts'
import { AdminProblem } from '../../problem.ts'
import type { AdminServices } from '../../route.ts'

/** The days whose called tools are known, with today. */
const usageDays = 2
/** Shorter names are the end of many others. */
const shortestEnd = 3

interface Asked {
  /** The tenant without its kill switches. */
  readonly tenant: Tenant
  readonly services: AdminServices
  readonly charge: Administrator['charge']
}

/** Where a name may stand, what costs least first: the next one is looked at only where the others have not it. */
type Places = AsyncIterable<Iterable<string>>

const unknown = (detail: string): AdminProblem =>
  new AdminProblem(
    'not_found',
    detail,
    'Correct the name. What is to be stopped before anybody has seen it is stopped with ?force=true (--force).'
  )

/** @throws AdminProblem not_found, rate_limited */
export async function checkKnown(kill: Kill, asked: Asked): Promise<void> {
  if (kill.kind === 'tool') await checkTool(kill, asked)
  if (kill.kind === 'principal') await checkCaller(kill, asked)
}

/** @returns all names that were found, where the wanted one is not among them */
async function namesWithout(wanted: string, places: Places): Promise<Set<string> | undefined> {
  const found = new Set<string>()
  for await (const names of places) {
    for (const name of names) found.add(name)
    if (found.has(wanted)) return undefined
  }
  return found
}

/** Lists and logs show names of endpoints: `files__read` is `read` of its upstream. */
function suggestion(wanted: string, known: ReadonlySet<string>): string {
  const ends = [...known].filter((name) => name.length >= shortestEnd && wanted.endsWith(name))
  const [longest] = ends.sort((one, other) => other.length - one.length)
  const said = longest === undefined ? didYouMean(wanted, known) : didYouMean(longest, [longest])
  return said === undefined ? '' : ` ${said}`
}

async function checkTool({ upstream, tool }: Kill & { readonly kind: 'tool' }, asked: Asked): Promise<void> {
  // That there is no such upstream, and that it takes no pattern, is said elsewhere.
  if (!asked.tenant.upstreams.has(upstreamName(upstream)) || !isLiteral(tool)) return
  const known = await namesWithout(tool, toolsOf(upstream, asked))
  if (known === undefined) return
  throw unknown(
    known.size === 0
      ? `What tools the upstream ${upstream} has is not known yet.`
      : `Nobody has seen a tool of this name at the upstream ${upstream}.${suggestion(tool, known)}`
  )
}

const namesIn = (tools: ReadonlyArray<{ readonly name?: unknown }>): string[] => tools.map(({ name }) => String(name))

async function* toolsOf(upstream: string, { tenant, services, charge }: Asked): Places {
  const ofUpstream = (names: Iterable<string>): string[] =>
    [...names].filter((each) => each.startsWith(`${upstream}/`)).map((each) => each.slice(upstream.length + 1))
  const name = upstreamName(upstream)
  yield services.listings.named(tenant.id, name).flatMap(({ tools }) => namesIn(tools))
  for (const { tools = {}, allow, deny } of tenant.endpoints.values())
    yield ofUpstream([...Object.keys(tools), ...[allow, deny].flatMap((each) => each?.tools ?? []).filter(isLiteral)])
  for (const { upstreams, names = [] } of policiesOf(tenant).map(({ what }) => what))
    if (upstreams?.includes(upstream) === true) yield names.filter(isLiteral)
  for (const day of await services.usage.read(tenant.id, usageDays)) yield ofUpstream(day.tools.keys())
  const { hash } = tenant.upstreams.get(name) ?? {}
  if (hash === undefined) return
  const owner = { tenant: tenant.id, caller: `lists of ${upstream}` }
  yield namesIn((await storedListing({ store: services.store, hash, owner }, charge))?.tools ?? [])
}

const policiesOf = ({ policy, endpoints }: Tenant) =>
  [policy, ...[...endpoints.values()].map((each) => each.policy)].flatMap((each) => each?.rules ?? [])

async function checkCaller({ issuer, subject }: Kill & { readonly kind: 'principal' }, asked: Asked): Promise<void> {
  const { auth } = asked.tenant
  const own = [`${reservedIssuerPrefix}key`, `${reservedIssuerPrefix}anonymous`]
  const issuers = new Set([...auth.issuers.map((each) => each.issuer), ...own])
  if (!issuers.has(issuer)) throw unknown(`The tenant has no issuer of this name.${suggestion(issuer, issuers)}`)
  const known = await namesWithout(subject, subjectsOf(issuer, asked))
  if (known === undefined) return
  throw unknown(
    `Nobody of this name has called today at the process that answers, or has a session or a connection.` +
      suggestion(subject, known)
  )
}

async function* subjectsOf(issuer: string, { tenant, services, charge }: Asked): Places {
  const { callers, sessions, vault } = services
  const ofIssuer = (people: ReadonlyArray<{ readonly issuer: string; readonly subject: string }>): string[] =>
    people.filter((each) => each.issuer === issuer).map((each) => each.subject)
  if (issuer === `${reservedIssuerPrefix}key`) yield tenant.auth.keys.map(({ name }) => name)
  if (issuer === `${reservedIssuerPrefix}anonymous` && tenant.auth.mode === 'none') yield ['anonymous']
  yield ofIssuer(callersToday(callers, tenant.id))
  for (const { who } of policiesOf(tenant)) yield (who.subjects ?? []).filter(isLiteral)
  yield ofIssuer((await vault.connections.list(tenant.id)).map(({ person }) => person))
  const open = await sessions.index.count(tenant.id, sessionsLookedAt)
  charge(charsOfRecords(open))
  let looked = 0
  for await (const page of sessions.index.pages(tenant.id)) {
    yield ofIssuer(page.map(({ record }) => record.owner))
    looked += page.length
    if (looked >= open) return
  }
}
