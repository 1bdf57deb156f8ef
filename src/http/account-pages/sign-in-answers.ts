// Signing in on the pages of connections, as the browser sees it: with a key or a token, or elsewhere and back.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../../auth/authenticate.ts'
import { connectionsPath } from '../../config/auth/upstream-auth.ts'
import type { Tenant } from '../../config/snapshot.ts'
import type { Login } from '../../login/login.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Vault } from '../../vault/vault.ts'
import { clientAddressOf, type ServerState } from '../admission.ts'
import { redirect, showSignIn } from './connection-answers.ts'
import type { createConnectionSessions } from './connection-session.ts'
import { createPageSignIn } from './page-sign-in.ts'
import { principalWith } from './presented-credential.ts'

interface SignInAnswersOptions {
  readonly state: ServerState
  readonly authenticator: Authenticator
  readonly vault: Vault
  readonly login: Pick<Login, 'takeTicket' | 'fetchFor'>
  readonly sessions: ReturnType<typeof createConnectionSessions>
  readonly publicUrl: () => string
  readonly isSecure: () => boolean
  readonly tenantOf: (request: FastifyRequest) => Tenant
}

export function createSignInAnswers(options: SignInAnswersOptions) {
  const { state, vault, sessions, publicUrl, isSecure, tenantOf } = options
  const pageSignIn = createPageSignIn(options)
  const queryOf = ({ url }: FastifyRequest): string => new URL(url, publicUrl()).search

  async function signIn(request: FastifyRequest, reply: FastifyReply, tenant: Tenant, key: string): Promise<void> {
    const headers = ['Authorization', `Bearer ${key}`]
    const person = await principalWith(options, tenant, headers, request).catch((error: unknown) => {
      // That nobody can be asked now says nothing of the key.
      if (error instanceof GatewayError && (error.code === 'unavailable' || error.code === 'rate_limited')) throw error
      return undefined
    })
    if (person === undefined) return showSignIn(reply, tenant, queryOf(request), pageSignIn.placeOf(tenant), true)
    const cookie = sessions.begin(person, await vault.epochs.epochOf(tenant.id), isSecure())
    void reply.code(303).headers({ location: request.url, 'set-cookie': cookie }).send()
  }

  /** The browser goes to the login front of the tenant, or to its provider. */
  async function leave(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const tenant = tenantOf(request)
    const { url, cookie } = await pageSignIn.begin(tenant, queryOf(request))
    redirect(reply, url, cookie)
  }

  /** Answers a browser that comes back from the sign-in. */
  async function enter(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const tenant = tenantOf(request)
    const { person, query, cookie } = await pageSignIn.finish(tenant, {
      query: new URLSearchParams(queryOf(request)),
      cookies: request.headers.cookie,
      address: clientAddressOf(request.raw, state.snapshot)
    })
    const session = sessions.begin(person, await vault.epochs.epochOf(tenant.id), isSecure())
    redirect(reply, connectionsPath(tenant.id) + query, session, cookie)
  }

  return { placeOf: pageSignIn.placeOf, signIn, leave, enter }
}
