// The compiled configuration: frozen, complete, with every default applied and every name resolved. Other rooms read
// nothing else.

import type { AuthConfig, IssuerConfig } from './auth/auth-config.ts'
import type { EndpointName, Era, TenantId, UpstreamName } from '../protocol/messages.ts'
import type { ToolChange } from '../protocol/translate/change-tool.ts'
import type { KillInForce } from './policy/kill.ts'
import type { Networks } from './policy/networks.ts'
import type { PrincipalText } from './auth/principal-text.ts'
import type { Caller, Person, StdioAuth, UpstreamAuth } from './auth/upstream-auth.ts'
import type { LoginConfig } from './auth/login-config.ts'
import type { PolicyConfig, UpstreamTags } from './policy/policy-config.ts'
import type { ConfigInput } from './schema/config.ts'

interface UpstreamBase {
  readonly name: UpstreamName
  readonly tenant: TenantId
  /** Digest of the whole definition, tenant included: a reload keeps connections whose hash is unchanged. */
  readonly hash: string
  readonly isolation: 'shared' | 'principal' | 'session'
  /** `auto`: found out by asking the server. */
  readonly era: 'auto' | Era
  readonly connectMs: number
  /** A call fails when its upstream sends nothing for this long. */
  readonly timeoutMs: number
  /** A call fails when it has run for this long, whatever its upstream sends. */
  readonly maxTimeoutMs: number
  /** Calls that may run at it at once, over all connections. */
  readonly maxCalls: number
  /** A connection without calls and without a listening client is closed after this time. */
  readonly idleMs: number
  readonly maxMessageBytes: number
  /**
   * The person with the account or secret of this definition, who alone uses its connections. Not given: the definition
   * is the configured one, for all callers.
   */
  readonly person?: Person | undefined
  /** The caller whose identity the server is sent. Not given: the configured definition, with which no call is made. */
  readonly caller?: Caller | undefined
  /** Why the server cannot be sent this caller's identity, as the end of a sentence: calls are refused. */
  readonly refusal?: string | undefined
  /** Secrets that are masked in all messages of the server: arguments from references, and values from files. */
  readonly argumentSecrets?: readonly string[]
  /** Values of the definition from variables, but no paths and URLs: masked in the log, not in results. */
  readonly references?: readonly string[]
}

export interface StdioDefinition extends UpstreamBase {
  readonly type: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  /** The environment, in addition to PATH, HOME, LANG and the like. */
  readonly env: Readonly<Record<string, string>>
  /** Names of variables that it inherits besides. */
  readonly inheritEnv?: readonly string[]
  readonly cwd: string | undefined
  readonly auth?: StdioAuth | undefined
  /** The digest of the file at `command`, which is checked before each start; undefined: none is configured. */
  readonly sha256?: string
  /** The most memory of the process and all that it has started; undefined: only its tenant has a limit. */
  readonly memoryBytes?: number
  readonly maxProcesses: number
  /** How many idle processes are started in advance. */
  readonly warm?: number
  /** The sandbox, by bubblewrap; `preferred`: none where the system offers none. */
  readonly sandbox: 'off' | 'preferred' | 'required'
  /** Absolute paths that it sees in its sandbox, besides the programs of the system. */
  readonly sandboxRead: readonly string[]
  readonly sandboxWrite: readonly string[]
  readonly sandboxNetwork: boolean
}

export interface HttpDefinition extends UpstreamBase {
  readonly type: 'http'
  /** `auto`: Streamable HTTP, or the HTTP+SSE of 2024-11-05 if the server speaks only that. */
  readonly transport: 'auto' | 'streamable' | 'sse'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Further headers with values of the caller. */
  readonly principalHeaders?: Readonly<Record<string, PrincipalText>>
  /** The credential that the server is sent. */
  readonly auth?: UpstreamAuth | undefined
  /** Hosts of its URLs that have to be public, because a tenant-admin may have named them; not given: none. */
  readonly publicHosts?: readonly string[]
  /** The time without any answer after which the gateway checks whether the server still answers; 0: never. */
  readonly checkAfterMs: number
  /** Whether other replicas may send calls in a session of one replica at this server. */
  readonly lendSessions: boolean
}

export type UpstreamDefinition = StdioDefinition | HttpDefinition

export interface EndpointMember {
  readonly upstream: UpstreamName
  /** Put before each name, with `separator` between; empty: names stay as they are. */
  readonly prefix: string
}

export interface Endpoint {
  readonly name: EndpointName
  readonly tenant: TenantId
  /** `/t/{tenant}/mcp` or `/t/{tenant}/{endpoint}/mcp`. */
  readonly path: string
  readonly members: readonly EndpointMember[]
  readonly separator: string
  readonly instructions: string | undefined
  /** All scopes that a caller needs here, those of the tenant included. Default: those of the tenant. */
  readonly requiredScopes?: readonly string[]
  /** Lists leave out what the caller lacks scopes for. */
  readonly listsByScopes?: boolean
  /** Values of `aud` that stand for it besides its URL; not given: none. */
  readonly audiences?: readonly string[]
  /** Patterns over upstream/name; a kind without them is offered whole. */
  readonly allow?: KindPatterns | undefined
  readonly deny?: KindPatterns | undefined
  /** The changes of tools, by upstream/name. */
  readonly tools?: Readonly<Record<string, ToolChange>> | undefined
  /** Patterns: tools that match an earlier one are listed before others. */
  readonly order?: readonly string[]
  readonly maxTools?: number | undefined
  /** The longest JSON of the tools, in bytes. */
  readonly maxCatalogBytes?: number | undefined
  /** The longest answer of a server, in bytes. */
  readonly maxResultBytes?: number | undefined
  /** Applies in addition to that of the tenant: both have to allow. */
  readonly policy: PolicyConfig | undefined
  /** The configured endpoint, if this one is the view of one person. */
  readonly ofEverybody?: Endpoint | undefined
}

/** A reload compares endpoints as JSON: they hold no maps. */
export type KindPatterns = Partial<
  Record<'tools' | 'prompts' | 'resources' | 'templates', readonly string[] | undefined>
>

export interface Tenant {
  readonly id: TenantId
  /** Browser origins, as `new URL(x).origin` writes them. */
  readonly origins: ReadonlySet<string>
  readonly auth: AuthConfig
  readonly upstreams: ReadonlyMap<UpstreamName, UpstreamDefinition>
  readonly endpoints: ReadonlyMap<EndpointName, Endpoint>
  readonly policy: PolicyConfig | undefined
  readonly tags: ReadonlyMap<UpstreamName, UpstreamTags>
  /** Parts that a platform-admin has reserved: rules and limits in them look at no hint of a tenant-admin. */
  readonly reserved?: readonly string[] | undefined
  /** The limits of calls, by name. */
  readonly limits?: CallLimitsConfig | undefined
  /** The resources that the tenant may use, below the limits of the process. */
  readonly resources?: Resources | undefined
  readonly audit: TenantAudit
  /** Undefined: no argument or result is in the log. */
  readonly logSample?: ConfigInput['tenants'][string]['logSample'] | undefined
  /** Kill switches, already applied to the rest of the tenant; kept for `explain` and for calls in flight. */
  readonly kills?: readonly KillInForce[]
  readonly unstopped?: Tenant
}

export type CallLimitsConfig = Readonly<NonNullable<ConfigInput['tenants'][string]['limits']>>
export type Resources = Readonly<NonNullable<ConfigInput['tenants'][string]['resources']>>
export type CallLimit = Readonly<CallLimitsConfig[string]>

/** The audit settings of a tenant, where anything is recorded. */
export type TenantAudit = Readonly<ConfigInput['tenants'][string]['audit']>

/** The audit settings of the gateway: where records are written. */
export type AuditConfig = Readonly<Exclude<ConfigInput['audit'], 'none'>>
export type VaultKey = Readonly<NonNullable<ConfigInput['vault']>['keys'][number]>
export type AwsKmsKey = Readonly<NonNullable<VaultKey['awsKms']>>
export type SyslogConfig = Readonly<NonNullable<AuditConfig['syslog']>>
export type OtlpLogsConfig = Readonly<NonNullable<AuditConfig['otlp']>>

export type StoreConfig =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string }

/** A key of the admin API, known by its digest. */
export interface AdminKeyConfig {
  readonly name: string
  readonly sha256: string
  readonly role: 'platform-admin' | 'tenant-admin' | 'auditor' | 'viewer' | 'metrics'
  /** undefined: all. */
  readonly tenants?: readonly string[] | undefined
}

/** The access of callers that have one value of each member that is given. */
export interface AdminAccessConfig extends Pick<AdminKeyConfig, 'role' | 'tenants'> {
  readonly issuers?: readonly string[]
  readonly subjects?: readonly string[]
  readonly groups?: readonly string[]
  readonly roles?: readonly string[]
}

export interface AdminConfig {
  readonly listen: { readonly host: string; readonly port: number }
  /** Further names that the Host header may carry. */
  readonly hosts: readonly string[]
  readonly keys: readonly AdminKeyConfig[]
  /** Administrators who come with a token. */
  readonly oidc?: {
    /** The audience of their tokens, and of no other. */
    readonly audience: string
    readonly issuers: readonly IssuerConfig[]
    /** The provider at which people sign in to the console. */
    readonly login?: LoginConfig['provider'] | undefined
    /** The first that fits counts. */
    readonly access: readonly AdminAccessConfig[]
  }
  /** The Prometheus server for statistics that are older than the memory of a process. */
  readonly prometheus?:
    | {
        readonly url: string
        readonly headers: Readonly<Record<string, string>>
        /** Labels that all series have that are asked for. */
        readonly matchers: Readonly<Record<string, string>>
      }
    | undefined
  /** The URL of a trace, with `{traceId}`. */
  readonly traceUrl?: string | undefined
  /** Programs that upstreams made by the admin API may start. */
  readonly allowedCommands: ReadonlyArray<{ readonly command: string; readonly sha256?: string }>
  /** Hosts of URLs that a tenant-admin may name; `*.` before one stands for any name below it. */
  readonly allowedHosts: readonly string[]
}

export interface Snapshot {
  readonly listen: { readonly host: string; readonly port: number }
  /** The public origin, such as https://mcp.example.com; undefined: http://host:port once bound. */
  readonly publicUrl: string | undefined
  /** Further names that the Host header may carry. */
  readonly hosts: readonly string[]
  /** Proxies whose `X-Forwarded-For` is believed; undefined: none. */
  readonly trustedProxies?: Networks | undefined
  readonly store: StoreConfig
  /** Keys under which accounts and secrets of people are kept; the first one is for what is written. */
  readonly vault?: { readonly keys: readonly VaultKey[] } | undefined
  /** Where URLs that no operator wrote may lead, beside public addresses and their port 443. */
  readonly egress: { readonly allow: readonly string[]; readonly ports: readonly number[] }
  readonly limits: Readonly<ConfigInput['limits'] & { readonly readyDelayMs: number }>
  readonly telemetry?: ConfigInput['telemetry'] // Undefined: no collector is sent anything.
  /** Undefined: people are shown by their names. */
  readonly pseudonyms?: { readonly key: string } | undefined
  readonly admin: AdminConfig | undefined // Undefined: there is no admin API.
  /** Undefined: nothing is recorded. */
  readonly audit: AuditConfig | undefined
  readonly tenants: ReadonlyMap<TenantId, Tenant>
  /** false: not all tenants of the admin API could be read from the store, or used. Not given: all tenants are here. */
  readonly isWhole?: boolean
}
