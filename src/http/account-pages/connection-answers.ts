// Answers to a browser on the pages of connections.

import type { FastifyReply } from 'fastify'
import { connectionsPath } from '../../config/auth/upstream-auth.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { pageText, securityHeaders } from '../../login/pages.ts'
import { signInBody } from './connection-pages.ts'

interface Answer {
  readonly title: string
  readonly body: string
  readonly status?: number
  readonly cookie?: string
}

export function showPage(reply: FastifyReply, tenant: Tenant, { title, body, status = 200, cookie }: Answer): void {
  void reply
    .code(status)
    .headers({ ...securityHeaders([], tenant.auth.login?.logo), ...(cookie !== undefined && { 'set-cookie': cookie }) })
    .type('text/html; charset=utf-8')
    .send(pageText({ name: tenant.id, ...tenant.auth.login, title, body }))
}

export function redirect(reply: FastifyReply, location: string, ...cookies: readonly string[]): void {
  void reply
    .code(303)
    .headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'set-cookie': [...cookies] })
    .send()
}

/**
 * @param query of the page, which is shown afterwards
 * @param place where people sign in; undefined: they show a key
 */
export function showSignIn(reply: FastifyReply, tenant: Tenant, query: string, place?: string, wrong = false): void {
  const path = connectionsPath(tenant.id)
  showPage(reply, tenant, {
    title: 'Your connections',
    body: signInBody({ path, query, place, wrong, isOpen: tenant.auth.mode === 'none' }),
    status: wrong ? 403 : 200
  })
}
