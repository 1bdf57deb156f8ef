// `/t/{tenant}/connections`: where a person sees, connects and disconnects their accounts, in a browser or as JSON.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../../auth/authenticate.ts'
import { isConfiguredPrincipal, personKeyOf } from '../../auth/principal.ts'
import { reservedIssuerPrefix } from '../../config/auth/auth-config.ts'
import type { Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import { connectionsPath, type Person } from '../../config/auth/upstream-auth.ts'
import { holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import { shownName } from '../../observe/pseudonyms.ts'
import type { Login } from '../../login/login.ts'
import { GatewayError, tenantId, upstreamName } from '../../protocol/messages.ts'
import { clientDocument, ConnectRefused } from '../../vault/oauth/account-client.ts'
import { isPersonal, personalUpstreamsOf, shownTargetOf } from '../../vault/personal-views.ts'
import type { Vault } from '../../vault/vault.ts'
import { addressOf, type PathParams, type RouteReply, type RouteRequest, type ServerState } from '../admission.ts'
import { connectionsBody, leaveBody, noteBody } from './connection-pages.ts'
import { showPage, showSignIn } from './connection-answers.ts'
import { reserveRequest } from '../request-memory.ts'
import type { RequestRates } from '../rates/request-rates.ts'
import { type ConnectionSession, createConnectionSessions } from './connection-session.ts'
import { connectionsOf } from './connection-states.ts'
import { createSignInAnswers } from './sign-in-answers.ts'
import { principalWith } from './presented-credential.ts'

interface ConnectionRoutesOptions {
  readonly state: ServerState
  readonly authenticator: Authenticator
  readonly vault: Vault
  readonly login: Pick<Login, 'takeTicket' | 'knows' | 'fetchFor'>
  readonly memory: MemoryAccount
  readonly rates: RequestRates
  readonly refuse: (request: RouteRequest, reply: RouteReply, error: unknown, id: null) => void
}

/** Bytes of a form: a key or a secret, and little else. */
const maxFormBytes = 32_768

const strangers = 'connections'

export function addConnectionRoutes(server: FastifyInstance, options: ConnectionRoutesOptions): void {
  const { state, vault, login, memory, rates, refuse } = options
  const tenantOf = (request: FastifyRequest): Tenant => tenantIn(options, request)
  const sessions = createConnectionSessions(vault)
  const queryOf = ({ url }: FastifyRequest): URLSearchParams => new URL(url, publicUrl()).searchParams
  const publicUrl = (): string => addressOf(state).publicUrl
  const isSecure = (): boolean => publicUrl().startsWith('https:')
  const { placeOf, signIn, leave, enter } = createSignInAnswers({ ...options, sessions, publicUrl, isSecure, tenantOf })

  /**
   * Whose browser it is, while the configuration lets them in.
   * @throws GatewayError unavailable, rate_limited
   */
  async function sessionOf(request: FastifyRequest, tenant: Tenant): Promise<ConnectionSession | undefined> {
    const session = await sessions.read(tenant.id, request.headers.cookie, isSecure())
    if (session === undefined || !isConfiguredPrincipal(session.person, tenant.auth)) return undefined
    if ((await vault.epochs.epochOf(tenant.id)) !== session.epoch) return undefined
    countOf(session.person)
    return (await login.knows(tenant, session.person)) ? session : undefined
  }

  function countOf(person: Person): void {
    const principal = { ...person, kind: 'person', clientId: 'connections' }
    rates.count({ person: personKeyOf(person), principal })
  }

  async function show(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const tenant = tenantOf(request)
    if (request.headers.authorization !== undefined) {
      const person = await principalWith(options, tenant, request.raw.rawHeaders, request)
      countOf(person)
      return void reply
        .headers({ 'cache-control': 'no-store' })
        .send({ connections: await connectionsOf(vault, tenant, person) })
    }
    const path = connectionsPath(tenant.id)
    const session = await sessionOf(request, tenant)
    const query = queryOf(request)
    const [upstream, link] = [query.get('upstream') ?? undefined, query.get('for') ?? undefined]
    const own =
      upstream === undefined ? '' : `?${String(new URLSearchParams({ upstream, ...(link && { for: link }) }))}`
    if (session === undefined) return showSignIn(reply, tenant, own, placeOf(tenant))
    const { person, name, csrf } = session
    if (link !== undefined && vault.pages.personOf(tenant.id, upstream ?? '', link) !== personKeyOf(person))
      throw new ConnectRefused('This link was made for somebody else, or is too old. Nothing was connected.')
    const all = await connectionsOf(vault, tenant, person)
    const some = upstream === undefined ? all : all.filter((each) => each.upstream === upstream)
    const isOpen = tenant.auth.mode === 'none'
    const serverOf = (each: string): string => shownTargetOf(definitionOf(tenant, each))
    const body = connectionsBody({ path, csrf, account: name, isOpen, all: some, serverOf })
    showPage(reply, tenant, { title: 'Your connections', body })
  }

  async function act(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const tenant = tenantOf(request)
    // A page of somebody else could sign the browser in as them, and get what is entered then (login CSRF).
    if (request.headers.origin !== new URL(publicUrl()).origin)
      throw new ConnectRefused('This form was not sent from a page of this gateway. Open the page of your connections.')
    const form = new URLSearchParams(request.body as string)
    const path = connectionsPath(tenant.id)
    const action = form.get('action')
    if (action === 'sign-in') return await signIn(request, reply, tenant, form.get('key') ?? '')
    const session = await sessionOf(request, tenant)
    if (session === undefined) return showSignIn(reply, tenant, '', placeOf(tenant))
    const { person, csrf } = session
    if (!sessions.isOwnForm(form.get('csrf') ?? undefined, csrf))
      throw new ConnectRefused('This form is of another session. Open the page again.')
    if (action === 'sign-out')
      return void reply
        .code(303)
        .headers({ location: path, 'set-cookie': await sessions.end(session, isSecure()) })
        .send()
    const definition = definitionOf(tenant, form.get('upstream') ?? undefined)
    if (action === 'connect' && definition.type === 'http' && definition.auth?.type === 'user') {
      const begun = vault.accounts.begin(definition, definition.auth, person)
      const url = await begun.catch(failedWith(options, { id: request.id, person, upstream: definition.name }))
      return showPage(reply, tenant, { title: `Connect ${definition.name}`, body: leaveBody(url) })
    }
    if (action === 'secret' && definition.auth?.type === 'userSecret')
      await vault.keepSecret(stillShown(definition, form.get('server')), person, form.get('secret') ?? '')
    if (action === 'disconnect') await vault.disconnect(definition, person)
    void reply.code(303).headers({ location: path }).send()
  }

  async function comeBack(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const tenant = tenantOf(request)
    const path = connectionsPath(tenant.id)
    const session = await sessionOf(request, tenant)
    if (session === undefined) throw new ConnectRefused('You are not signed in here any more. Begin again.')
    const failing: Failing = { id: request.id, person: session.person, upstream: undefined }
    const finished = vault.accounts.finish(queryOf(request), session.person, (name) => {
      failing.upstream = name
      const definition = definitionOf(tenant, name)
      return definition.type === 'http' ? definition : undefined
    })
    const upstream = await finished.catch(failedWith(options, failing))
    const text = `${upstream} is connected. Go back to your app and repeat what you were doing.`
    showPage(reply, tenant, { title: 'Connected', body: noteBody(text, path) })
  }

  type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

  /** Answers a failure that the person can do something about with a page, and another one as everywhere. */
  const handled =
    (handler: Handler) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      try {
        await handler(request, reply)
      } catch (error) {
        if (error instanceof GatewayError) {
          reply.hijack()
          refuse(request, reply, error, null)
          return reply
        }
        const tenant = tenantOf(request)
        const isRefusal = error instanceof ConnectRefused
        const requestId = request.id
        if (!isRefusal) vault.log.warn({ err: error, requestId, tenant: tenant.id }, 'a page of connections has failed')
        const text = isRefusal ? error.message : otherSide
        showPage(reply, tenant, {
          title: 'Not connected',
          body: noteBody(text, connectionsPath(tenant.id)),
          status: 400
        })
      }
      return reply
    }

  /** Strangers send forms, too: what they take up is counted together. */
  async function hold(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const held = holdMemory(memory.share(tenantOf(request).id, strangers))
    reserveRequest({ memory: held, raw: reply.raw, incoming: request.raw }, maxFormBytes)
  }

  // A scope of its own, for its content type parser. It is loaded before the server listens.
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addHook('onRequest', hold)
    const reading = { parseAs: 'string' as const, bodyLimit: maxFormBytes }
    scope.addContentTypeParser('application/x-www-form-urlencoded', reading, (_request, body, done) => done(null, body))
    scope.get('/t/:tenant/connections', { exposeHeadRoute: true }, handled(show))
    scope.post('/t/:tenant/connections', handled(act))
    scope.get('/t/:tenant/connections/callback', handled(comeBack))
    scope.get('/t/:tenant/connections/sign-in', handled(leave))
    scope.get('/t/:tenant/connections/signed-in', handled(enter))
    scope.get('/t/:tenant/connections/client.json', (request, reply) =>
      reply.headers({ 'cache-control': 'max-age=300' }).send(clientDocument(publicUrl(), tenantOf(request).id))
    )
  })
}

const otherSide = 'The other side did not answer as it should. Try again later.'

interface Failing {
  readonly id: string
  readonly person: Person
  upstream: string | undefined
}

/** The person is told what they can do, and the log the rest. */
const failedWith =
  ({ state, vault }: Pick<ConnectionRoutesOptions, 'state' | 'vault'>, failing: Failing) =>
  (err: unknown): never => {
    if (err instanceof ConnectRefused || err instanceof GatewayError) throw err
    const { id: requestId, person, upstream } = failing
    const { tenant, issuer, subject } = person
    const who = {
      [issuer === `${reservedIssuerPrefix}key` ? 'apiKey' : 'user']: shownName(state.snapshot, tenant, subject)
    }
    vault.log.warn({ err, requestId, tenant, upstream, ...who }, 'an account could not be connected')
    throw new ConnectRefused(otherSide)
  }

/** @throws GatewayError not_found where the tenant has nothing to connect */
function tenantIn({ state }: Pick<ConnectionRoutesOptions, 'state'>, { params }: FastifyRequest): Tenant {
  const { tenant: id = '' } = params as PathParams
  const tenant = state.snapshot.tenants.get(tenantId(id))
  if (tenant === undefined || personalUpstreamsOf(tenant).length === 0)
    throw new GatewayError('not_found', 'No upstream of this tenant takes accounts or secrets of people.')
  if (tenant.auth.stopped === 'everybody')
    throw new GatewayError(
      'stopped',
      'An administrator of this gateway has stopped this tenant. Ask them when it comes back.'
    )
  return tenant
}

function definitionOf(tenant: Tenant, name: string | undefined): UpstreamDefinition {
  const definition = name === undefined ? undefined : tenant.upstreams.get(upstreamName(name))
  if (definition !== undefined && isPersonal(definition)) return definition
  throw new ConnectRefused('There is no upstream of this name to connect.')
}

/** @throws ConnectRefused where it was another server when the page was shown */
function stillShown(definition: UpstreamDefinition, server: string | null): UpstreamDefinition {
  if (server === shownTargetOf(definition)) return definition
  throw new ConnectRefused(`${definition.name} is another server now. Nothing was kept: open the page again.`)
}
