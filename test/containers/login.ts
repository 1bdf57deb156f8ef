// A host logs in as hosts do: from the 401 of the gateway to a token, with the pages that a person would click through
// (2025-11-25 basic/authorization; RFC 9728, 8414, 7591, 7636, 8707).

import { createHash, randomBytes } from 'node:crypto'

const redirectUri = 'http://127.0.0.1:3334/callback'

/** A browser without a screen: keeps cookies, follows one redirect at a time. */
function browser() {
  const cookies = new Map<string, string>()
  return async (url: string, form?: Record<string, string>): Promise<{ url: string; text: string }> => {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) })
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    return { url: location === null ? url : new URL(location, url).href, text: await response.text() }
  }
}

async function json<T>(url: string, init?: RequestInit): Promise<T> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

/** @returns an access token of this person for the endpoint */
export async function logIn(endpoint: string, name: string): Promise<string> {
  const refused = await fetch(endpoint, { method: 'POST' })
  const [, metadataUrl] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? []
  if (refused.status !== 401 || metadataUrl === undefined) throw new Error(`no challenge: ${refused.status}`)
  const { resource, authorization_servers: servers } = await json<{
    resource: string
    authorization_servers: readonly string[]
  }>(metadataUrl)
  const issuer = servers[0] ?? ''
  const server = await json<Record<string, string>>(`${issuer}/.well-known/openid-configuration`)
  const { client_id: clientId } = await json<{ client_id: string }>(server['registration_endpoint'] ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: [redirectUri],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code']
    })
  })

  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid mcp',
    resource,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256'
  })
  const visit = browser()
  let at = await visit(`${server['authorization_endpoint']}?${query.toString()}`)
  for (let steps = 0; !at.url.startsWith(redirectUri); steps += 1) {
    if (steps === 12) throw new Error(`the login does not end; it is at ${at.url}:\n${at.text}`)
    const prompt = /name="prompt" value="(\w+)"/.exec(at.text)?.[1]
    at = await (prompt === undefined ? visit(at.url) : visit(at.url, { prompt, login: name, password: 'any' }))
  }
  const code = new URL(at.url).searchParams.get('code')
  if (code === null) throw new Error(`the login was refused: ${at.url}`)
  const { access_token: token } = await json<{ access_token: string }>(server['token_endpoint'] ?? '', {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      client_id: clientId,
      code_verifier: verifier,
      resource
    })
  })
  return token
}
