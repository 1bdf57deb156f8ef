// Translates the responses of token endpoints that differ from RFC 6749 section 5 into the standard form.

import type { Fetch } from '../../egress/fetch.ts'
import type { AccountProvider } from '../../config/auth/account-providers.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'

/** @param tokenUrl whose answers differ; requests to other URLs are passed on as they are */
export const fetchOfProvider =
  (provider: AccountProvider, tokenUrl: string, fetch: Fetch): Fetch =>
  async (url, init) => {
    if (url !== tokenUrl || init?.method !== 'POST') return await fetch(url, init)
    const response = await fetch(url, provider.jsonRequests === true ? withJson(init) : init)
    const said = membersOf(await response.text())
    if (said === undefined) return new Response(null, { status: response.status === 200 ? 502 : response.status })
    const { error } = said
    // GitHub and Slack refuse with status 200.
    if (error !== undefined || said['ok'] === false) {
      const code = typeof error === 'string' ? error : 'server_error'
      const name = provider.grantErrors?.includes(code) === true ? 'invalid_grant' : code
      return json(response.status === 200 ? 400 : response.status, { error: name })
    }
    return response.status === 200 ? json(200, tokensOf(said, provider)) : json(response.status, said)
  }

const json = (status: number, body: JsonObject): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })

function withJson(init: NonNullable<Parameters<Fetch>[1]>): Parameters<Fetch>[1] {
  const headers = Object.entries(init.headers ?? {}).filter(([name]) => name.toLowerCase() !== 'content-type')
  return {
    ...init,
    headers: { ...Object.fromEntries(headers), 'content-type': 'application/json' },
    body: JSON.stringify(Object.fromEntries(new URLSearchParams(String(init.body ?? ''))))
  }
}

/** Reads the members of an answer in JSON, or in a form, as GitHub answers where it is not asked for JSON. */
function membersOf(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    const form = Object.fromEntries(new URLSearchParams(text))
    return 'access_token' in form || 'error' in form ? form : undefined
  }
}

/** Returns the tokens of the person, never those of a bot, which would act for all people. */
function tokensOf(said: JsonObject, { personIn, tokenType }: AccountProvider): JsonObject {
  const nested = personIn === undefined ? undefined : said[personIn]
  const own = isObject(nested) && nested['access_token'] !== undefined ? nested : said
  const { access_token, token_type: type, expires_in, refresh_token, scope } = own
  const isOfPerson = personIn === undefined || own !== said || type === tokenType
  if (!isOfPerson) return {}
  const seconds = typeof expires_in === 'string' ? Number(expires_in) : expires_in
  const scopes = Array.isArray(scope) ? scope.join(' ') : scope
  return {
    access_token,
    token_type: type === tokenType && tokenType !== undefined ? 'bearer' : (type ?? 'bearer'),
    ...(seconds !== undefined && { expires_in: seconds }),
    ...(refresh_token !== undefined && refresh_token !== '' && { refresh_token }),
    // GitHub, Slack and Linear separate them by commas.
    ...(typeof scopes === 'string' && scopes !== '' && { scope: scopes.replaceAll(',', ' ') })
  }
}
