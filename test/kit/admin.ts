// A gateway with the admin API: two tenants, a key for each role, and requests as they go over the wire.

import { hash } from 'node:crypto'
import { request } from 'node:http'
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts'
import type { Teardown } from './until.ts'

/** As long as `gatehouse admin-key new` makes them. */
const keyNamed = (name: string): string => `gha_${hash('sha256', name, 'base64url')}`

export const adminKeys = {
  platform: keyNamed('platform'),
  acme: keyNamed('acme'),
  globex: keyNamed('globex'),
  auditor: keyNamed('auditor'),
  viewer: keyNamed('viewer'),
  metrics: keyNamed('metrics'),
  globexViewer: keyNamed('globexViewer')
} as const

export const adminSection = {
  listen: { port: 0 },
  keys: [
    { name: 'platform', role: 'platform-admin' },
    { name: 'acme', role: 'tenant-admin', tenants: ['acme'] },
    { name: 'globex', role: 'tenant-admin', tenants: ['globex'] },
    { name: 'auditor', role: 'auditor' },
    { name: 'viewer', role: 'viewer' },
    { name: 'metrics', role: 'metrics' },
    { name: 'globexViewer', role: 'viewer', tenants: ['globex'] }
  ].map((key) => ({ ...key, sha256: hash('sha256', keyNamed(key.name)) }))
}

export const globexKey = 'gh_key_of_globex_0123456789'

export interface AdminAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Parsed; undefined where there is no body. */
  readonly json: unknown
}

export interface AdminCall {
  /** Default: that of the platform admin. null: none. */
  readonly key?: string | null
  /** Sent as JSON; a text as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Of the caller: wrong keys are counted by address. */
  readonly from?: string
}

export interface AdminGateway extends TestGateway {
  call(method: string, path: string, call?: AdminCall): Promise<AdminAnswer>
}

export async function adminGateway(t: Teardown, options: TestGatewayOptions): Promise<AdminGateway> {
  const made = await gateway(t, {
    ...options,
    tenants: {
      globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} },
      ...options.tenants
    },
    top: { admin: adminSection, ...options.top }
  })
  return {
    ...made,
    get log() {
      return made.log
    },
    call: (method, path, call) => adminCall(made.adminUrl, method, path, call)
  }
}

export function adminCall(
  adminUrl: string,
  method: string,
  path: string,
  { key = adminKeys.platform, body, headers = {}, from }: AdminCall = {}
): Promise<AdminAnswer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const { promise, resolve, reject } = Promise.withResolvers<AdminAnswer>()
  const outgoing = request(
    `${adminUrl}${path}`,
    {
      method,
      agent: false,
      ...(from !== undefined && { localAddress: from }),
      headers: {
        ...(key !== null && { Authorization: `Bearer ${key}` }),
        ...(text !== undefined && { 'Content-Type': 'application/json' }),
        ...headers
      }
    },
    (answer) => {
      answer.setEncoding('utf8')
      let received = ''
      answer.on('data', (part: string) => (received += part))
      answer.on('error', reject)
      answer.on('end', () => {
        const { statusCode: status = 0, headers: given } = answer
        const isJson = received !== '' && /json\b/.test(given['content-type'] ?? '')
        const json: unknown = isJson ? JSON.parse(received) : undefined
        resolve({ status, headers: given, text: received, json })
      })
    }
  )
  outgoing.on('error', reject)
  outgoing.end(text)
  return promise
}
