// A login where the host has no browser: the person enters a code at another device (OAuth 2.0 Device Authorization
// Grant, RFC 8628), while the host asks again and again whether they have.

import { cellText } from '../../observe/text-log.ts'
import { steadyClock } from '../../time/clock.ts'
import { Diagnosis } from './catalogue.ts'
import type { SendOnce } from './exchange.ts'
import { atIssuer, judgeTarget, said, type LoginServer } from './login-hops.ts'

export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** In seconds: RFC 8628 section 3.2 says what counts where the server says nothing, section 3.5 how it slows down. */
const [defaultInterval, slowedBy, shortestInterval, longestInterval] = [5, 5, 1, 60]

export type DeviceLoginServer = LoginServer & { readonly device: URL }

/** @throws Diagnosis device_not_offered: before a client is left behind there */
export function withDeviceLogin(server: LoginServer): DeviceLoginServer {
  const { issuer, device } = server
  if (device === undefined) throw new Diagnosis('device_not_offered', { issuer })
  return { ...server, device }
}

/**
 * @param person shown the page and the code that they enter there
 * @returns the access token. @throws Diagnosis
 */
export async function logInByDevice(
  send: SendOnce,
  server: DeviceLoginServer,
  clientId: string,
  asked: { readonly resource: string; readonly scope: string },
  person: { browse(page: string, userCode: string): void; readonly waitMs: number }
): Promise<string> {
  const { issuer, device, token } = server
  const { resource, scope } = asked
  const post = async (url: URL, form: Record<string, string>) =>
    await atIssuer(send, issuer)(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
      body: new URLSearchParams({ ...form, client_id: clientId, resource }).toString()
    })
  const begun = await post(device, scope === '' ? {} : { scope })
  const { device_code: deviceCode, user_code: userCode, verification_uri: page } = begun.json ?? {}
  if (typeof deviceCode !== 'string' || typeof userCode !== 'string' || typeof page !== 'string') {
    judgeTarget(begun.json?.['error'], asked)
    throw new Diagnosis('device_refused', { issuer, said: said(begun.status, begun.json, begun.text) })
  }
  person.browse(cellText(begun.json?.['verification_uri_complete'] ?? page), userCode)
  const late = new Diagnosis('login_not_finished', { seconds: person.waitMs / 1_000 })
  const end = steadyClock.now() + person.waitMs
  let interval = secondsOf(begun.json?.['interval'])
  for (;;) {
    // Unlike `pause`, this keeps the process alive.
    const waitedMs = Math.min(interval * 1_000, end - steadyClock.now())
    await new Promise<void>((resolve) => void steadyClock.timer(waitedMs, resolve))
    if (steadyClock.now() >= end) throw late
    const { status, json, text } = await post(token, { grant_type: deviceGrant, device_code: deviceCode })
    const got = json?.['access_token']
    if (typeof got === 'string') return got
    judgeTarget(json?.['error'], asked)
    switch (json?.['error']) {
      case 'authorization_pending':
        break
      case 'slow_down':
        interval = Math.min(interval + slowedBy, longestInterval)
        break
      case 'expired_token':
        throw late
      case 'access_denied':
        throw new Diagnosis('login_refused', { said: said(status, json, text) })
      default:
        throw new Diagnosis('token_refused', { said: said(status, json, text) })
    }
  }
}

/** RFC 8628 section 3.2 knows whole seconds: less would have the server flooded. */
const secondsOf = (interval: unknown): number =>
  typeof interval === 'number' && interval > 0
    ? Math.min(Math.max(interval, shortestInterval), longestInterval)
    : defaultInterval
