// Signing in for the page of a person's connections, which is no client: whoever has the session of the browser is sent
// there with a ticket, good once, for the browser that asked.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import { connectionsPath } from '../config/auth/upstream-auth.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { TenantId } from '../protocol/messages.ts'
import type { createIdentities } from './people/identities.ts'
import { errorPage, sendPage, startAgain } from './pages.ts'
import type { LoginRecords } from './records.ts'

/** The life of a ticket: from one redirect to the next, in milliseconds. */
const ticketMs = 60_000

export interface Ticket {
  /** The state of the browser that asked, which keeps it in a cookie. */
  readonly state: string
  readonly subject: string
  readonly name: string
}

interface ConnectionsSignInOptions {
  readonly tenant: { readonly id: TenantId }
  readonly config: LoginConfig
  readonly records: LoginRecords
  readonly identities: ReturnType<typeof createIdentities>
}

export type ConnectionsSignIn = ReturnType<typeof createConnectionsSignIn>

export function createConnectionsSignIn({ tenant, config, records, identities }: ConnectionsSignInOptions) {
  return {
    /**
     * @param state of the browser, as the request names it
     * @returns false where nobody is signed in, and the state is one: nothing was answered
     * @throws Error where the provider cannot be asked
     */
    async answer(
      provider: Provider,
      state: string,
      request: IncomingMessage,
      response: ServerResponse
    ): Promise<boolean> {
      if (!/^[\w-]{43}$/.test(state)) return (sendPage(response, 400, errorPage(config, startAgain)), true)
      const { accountId } = await provider.Session.get(provider.createContext(request, response))
      // Whom the provider knows no more connects nothing.
      const identity = accountId === undefined ? undefined : await identities.current(accountId)
      request.resume()
      if (identity === undefined) return false
      const id = randomBytes(32).toString('base64url')
      const { subject, name } = identity
      await records.write('Ticket', id, { state, subject, name } satisfies Ticket, ticketMs)
      const location = `${connectionsPath(tenant.id)}/signed-in?${String(new URLSearchParams({ ticket: id, state }))}`
      response.writeHead(303, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).end()
      return true
    },
    /** Whether the provider still knows the person who signed in, as far as it says so now. */
    async knows(subject: string): Promise<boolean> {
      // While it is away, what it said last counts, as for tokens.
      return (await identities.current(subject).catch(() => identities.get(subject))) !== undefined
    },
    /** @returns undefined where there is none, or it was used */
    takeTicket: async (id: string): Promise<Ticket | undefined> =>
      (await records.take('Ticket', id)) as Ticket | undefined
  }
}
