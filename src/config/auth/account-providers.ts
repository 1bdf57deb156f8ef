// Account providers that are no MCP authorization servers: their URLs, and how their responses differ from OAuth 2.1.
// The facts are from their own documentation, which each entry names.

/** The URL at which a provider returns the name of an account, for a request with its token. */
export interface AccountNameSource {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON: it is posted. */
  readonly body?: string
  /** Paths of members that hold the name, with dots; the first one present is used. */
  readonly names?: readonly string[]
}

/** A request with the access token of the person. */
export interface AccountRevocation {
  readonly method: 'POST' | 'DELETE'
  /** `Basic` of the client, or `Bearer` of the token itself. */
  readonly authorization: 'client' | 'token'
  /** The member of its JSON that has the token; not given: it has no body. */
  readonly tokenIn?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The differences of a provider; what is not given is as in OAuth 2.1. */
export interface AccountProvider {
  readonly issuer: string
  readonly authorizationUrl: string
  readonly tokenUrl: string
  /** The URL at which tokens are revoked, with `{client_id}` for the client; not given: they cannot be. */
  readonly revocationUrl?: string
  /** The way to revoke, where it is not that of RFC 7009. */
  readonly revocation?: AccountRevocation
  readonly clientMethod: 'client_secret_basic' | 'client_secret_post'
  /** The parameter that names scopes, and what stands between them. */
  readonly scopeParameter?: string
  readonly scopeSeparator?: ','
  /** Asked for in any case: without them there is no refresh token. */
  readonly alwaysAsked?: readonly string[]
  /** Further parameters of the page where a person allows it. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Requests for tokens are JSON. */
  readonly jsonRequests?: true
  /** The member of a response with the tokens of the person; the tokens beside it are those of a shared bot. */
  readonly personIn?: string
  /** Types of tokens that are sent as bearer tokens all the same. */
  readonly tokenType?: string
  /** Errors that mean `invalid_grant` (RFC 6749 section 5.2). */
  readonly grantErrors?: readonly string[]
  readonly account?: AccountNameSource
}

export const accountProviders = {
  /** docs.github.com: "Authorizing OAuth apps", "Refreshing user access tokens", "Troubleshooting OAuth app access
   * token request errors", "Delete an app authorization". */
  github: {
    issuer: 'https://github.com/login/oauth',
    authorizationUrl: 'https://github.com/login/oauth/authorize',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    revocationUrl: 'https://api.github.com/applications/{client_id}/grant',
    revocation: { method: 'DELETE', authorization: 'client', tokenIn: 'access_token' },
    clientMethod: 'client_secret_post',
    grantErrors: ['bad_verification_code', 'bad_refresh_token'],
    account: { url: 'https://api.github.com/user', names: ['login'] }
  },
  /** developers.google.com: "Using OAuth 2.0 for Web Server Applications". */
  google: {
    issuer: 'https://accounts.google.com',
    authorizationUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
    tokenUrl: 'https://oauth2.googleapis.com/token',
    revocationUrl: 'https://oauth2.googleapis.com/revoke',
    clientMethod: 'client_secret_post',
    parameters: { access_type: 'offline', prompt: 'consent' },
    account: { url: 'https://openidconnect.googleapis.com/v1/userinfo', names: ['email', 'name'] }
  },
  /** docs.slack.dev: "Installing with OAuth", `oauth.v2.access`, "Using token rotation", `auth.revoke`. */
  slack: {
    issuer: 'https://slack.com',
    authorizationUrl: 'https://slack.com/oauth/v2/authorize',
    tokenUrl: 'https://slack.com/api/oauth.v2.access',
    revocationUrl: 'https://slack.com/api/auth.revoke',
    revocation: { method: 'POST', authorization: 'token' },
    clientMethod: 'client_secret_basic',
    scopeParameter: 'user_scope',
    scopeSeparator: ',',
    personIn: 'authed_user',
    tokenType: 'user',
    grantErrors: ['invalid_code', 'code_already_used', 'invalid_refresh_token', 'token_revoked', 'token_expired'],
    account: { url: 'https://slack.com/api/auth.test', names: ['user'] }
  },
  /** developers.notion.com: "Authorization", "Create a token", "Refresh a token", "Revoke a token". */
  notion: {
    issuer: 'https://api.notion.com',
    authorizationUrl: 'https://api.notion.com/v1/oauth/authorize',
    tokenUrl: 'https://api.notion.com/v1/oauth/token',
    revocationUrl: 'https://api.notion.com/v1/oauth/revoke',
    revocation: {
      method: 'POST',
      authorization: 'client',
      tokenIn: 'token',
      headers: { 'notion-version': '2022-06-28' }
    },
    clientMethod: 'client_secret_basic',
    parameters: { owner: 'user' },
    jsonRequests: true,
    account: {
      url: 'https://api.notion.com/v1/users/me',
      headers: { 'notion-version': '2022-06-28' },
      names: ['bot.owner.user.person.email', 'bot.owner.user.name', 'bot.workspace_name']
    }
  },
  /** linear.app/developers: "OAuth 2.0 authentication". */
  linear: {
    issuer: 'https://linear.app',
    authorizationUrl: 'https://linear.app/oauth/authorize',
    tokenUrl: 'https://api.linear.app/oauth/token',
    revocationUrl: 'https://api.linear.app/oauth/revoke',
    clientMethod: 'client_secret_post',
    scopeSeparator: ',',
    account: {
      url: 'https://api.linear.app/graphql',
      body: '{"query":"{ viewer { email name } }"}',
      names: ['data.viewer.email', 'data.viewer.name']
    }
  },
  /** developer.atlassian.com: "OAuth 2.0 (3LO) apps", "Implementing OAuth 2.0 (3LO)". */
  atlassian: {
    issuer: 'https://auth.atlassian.com',
    authorizationUrl: 'https://auth.atlassian.com/authorize',
    tokenUrl: 'https://auth.atlassian.com/oauth/token',
    clientMethod: 'client_secret_post',
    alwaysAsked: ['offline_access'],
    parameters: { audience: 'api.atlassian.com', prompt: 'consent' },
    jsonRequests: true,
    account: { url: 'https://api.atlassian.com/me', names: ['email', 'name'] }
  }
} as const satisfies Readonly<Record<string, AccountProvider>>

export type AccountProviderName = keyof typeof accountProviders

export const accountProviderNames = Object.keys(accountProviders) as AccountProviderName[]
