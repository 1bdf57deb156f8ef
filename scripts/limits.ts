// docs/limits.md: every number that bounds something, read from the source that enforces it, so that the page cannot
// drift from the code. A row whose constant is gone, and a number of src that no row and no exception names, fail `npm
// run docs`.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Where it stands: a file of src, its constants, and their unit where their names do not say it; what it bounds; of
 * whom; what happens then.
 */
type Row = readonly [source: string, what: string, per: string, beyond: string]

const sections: Readonly<Record<string, readonly Row[]>> = {
  'Credentials for upstreams': [
    ['vault/vault.ts maxSecretLength chars', 'a secret that a person enters', 'upstream', 'refused on the page'],
    [
      'http/account-pages/presented-credential.ts maxEndpoints',
      'endpoints that a credential is tried for',
      'request',
      'refused'
    ],
    ['http/account-pages/connection-routes.ts maxFormBytes bytes', 'a form of the page', 'request', '413'],
    [
      'http/account-pages/connection-session.ts sessionMs',
      'time for which a browser stays signed in',
      'person',
      'signs in'
    ],
    ['http/account-pages/page-sign-in.ts signInSeconds', 'time for a sign-in on the page', 'person', 'begun anew'],
    ['login/connections-sign-in.ts ticketMs', 'life of the way back from the login front', 'person', 'begun anew'],
    ['vault/oauth/account-name.ts maxName chars', 'what an account is called', 'person', 'cut off'],
    ['vault/connect-pages.ts linkMs', 'life of a link to the page', 'link', 'refused on the page'],
    ['vault/oauth/connect-account.ts pendingMs', 'time to allow it at the provider', 'person', 'begun anew'],
    [
      'vault/caller-definitions.ts maxCallersOfTenant',
      'callers whom upstreams are told of',
      'tenant',
      'the least recent is forgotten'
    ],
    [
      'vault/caller-definitions.ts maxPerUpstream',
      'tokens of one caller that say different things',
      'upstream',
      'the oldest is forgotten, its connections close'
    ],
    [
      'vault/caller-definitions.ts maxHeaderLength chars',
      'a header that says who calls',
      'call',
      'upstream_unavailable'
    ],
    ['vault/caller-definitions.ts idleMs', 'time without requests', 'caller', 'forgotten, connections close'],
    ['vault/oauth/token-exchange.ts retryMs', 'time without asking again after a failure', 'token', 'told of that one'],
    ['vault/oauth/token-exchange.ts admissionMs', 'time that a request waits for an exchange', 'request', 'goes on'],
    ['vault/oauth/token-exchange.ts maxTokens', 'tokens of one caller in use at once', 'caller', 'exchanged again'],
    [
      'vault/oauth/shared-exchanges.ts unsaidMs',
      'time that other processes read a token whose end is not said',
      'caller',
      'the caller calls again'
    ],
    [
      'vault/oauth/shared-exchanges.ts longestMs',
      'time that other processes wait for an exchange',
      'call',
      'upstream_unavailable'
    ],
    [
      'vault/oauth/first-issuers.ts maxKept',
      'clients of which it is kept whom their secret was for first',
      'tenant',
      'no token: the issuer has to be named'
    ],
    ['vault/oauth/first-issuers.ts maxTries', 'tries to write one down while others do', 'token', 'no token'],
    ['vault/oauth/shared-exchanges.ts pollMs', 'time between looks for its end', 'call', '-'],
    ['vault/signed/assertions.ts lifetimeSeconds', 'life of an assertion of who calls', 'assertion', 'signed anew'],
    ['vault/signed/assertions.ts usedMs', 'time that requests carry the same one', 'caller', 'signed anew'],
    ['vault/signed/assertions.ts replaceMs', 'age from which a refused one is replaced', 'caller', 'the refusal stays'],
    ['auth/signing/rotated-keys.ts rotateMs', 'life of a key that signs', 'tenant', 'replaced'],
    ['auth/signing/rotated-keys.ts publishedFirstMs', 'time that a new key is known before it signs', 'tenant', '-'],
    ['vault/signed/signing-keys.ts publishedAfterMs', 'time that an old key is known', 'tenant', 'taken out'],
    ['vault/signed/signing-keys.ts maxAgeMs', 'age of what a process knows of the keys', 'tenant', 'read again'],
    ['vault/known-people.ts maxPeople', 'people whose grants a process remembers', 'process', 'some are read again'],
    ['vault/known-people.ts maxPeopleOfTenant', 'the same, of one tenant', 'tenant', 'some of its own are read again'],
    ['vault/known-people.ts forgottenAtOnce', 'people who make room then, the least recent ones', 'process', '-'],
    ['vault/known-people.ts idleMs', 'time without requests and streams', 'person', 'forgotten, connections close'],
    ['vault/known-people.ts orderMs', 'exactness of who was the least recent', 'process', '-'],
    [
      'vault/people-connections.ts revokedAtOnce',
      'connections that are revoked, or given back, at once',
      'request',
      '-'
    ],
    ['store/keys.ts yearTtlMs', 'life of registered clients and last uses', 'upstream', 'made or noted anew'],
    ['store/keys.ts grantsListed', 'connections that administrators find', 'tenant', 'those of before are left out'],
    ['vault/stored/grant-ends.ts maxTries', 'tries to write one down while others do', 'request', '503'],
    ['vault/stored/grant-ends.ts maxLength chars', 'all of them as text', 'tenant', 'refused: all are ended instead'],
    [
      'vault/stored/grant-ends.ts maxEnds',
      'issuers and upstreams of which it is known when all their connections were ended',
      'tenant',
      'refused: all are ended instead'
    ],
    ['vault/grants.ts keptMs', 'time until they are read again', 'person', '-'],
    [
      'vault/lock.ts leaseMs',
      'time without a sign of the process that holds the lock of a renewal',
      'person and upstream',
      'another one renews'
    ],
    ['vault/lock.ts extendMs', 'time between such signs', 'person and upstream', '-'],
    ['vault/grant-uses.ts notedMs', 'exactness of when an account was used last', 'person and upstream', '-'],
    ['vault/lock.ts pollMs', 'time between looks for the end of a renewal', 'person and upstream', '-'],
    ['vault/oauth/account-client.ts maxCredentialLength chars', 'id and secret of a client', 'issuer', 'refused'],
    ['vault/oauth/connect-account.ts maxBegun', 'connections begun in ten minutes', 'person', 'refused on the page'],
    [
      'http/account-pages/sign-in-rate.ts signInsPerSecond',
      'ways back from a sign-in to the page, half of them for one address',
      'tenant',
      '429'
    ],
    ['http/account-pages/sign-in-rate.ts maxSignInsAtOnce', 'of them at once', 'tenant', '429'],
    [
      'http/account-pages/page-sign-in.ts maxAtOnce',
      'requests to the provider of `signIn`',
      'tenant',
      'the others wait'
    ],
    [
      'http/account-pages/page-sign-in.ts timeoutMs',
      'the wait for one of these places',
      'request',
      'refused on the page'
    ],
    [
      'http/account-pages/page-sign-in.ts maxUsed',
      'sign-ins to the page that have come back and are known as used',
      'process',
      'those used first are forgotten'
    ],
    ['http/account-pages/sign-in-rate.ts maxCounted', 'tenants that are counted', 'process', 'counted anew'],
    ['vault/grants.ts uncertainMs', 'the same while messages may be missed', 'person', '-'],
    [
      'vault/grants.ts renewalMs',
      'time in which one process renews a token',
      'person and upstream',
      'another one tries'
    ],
    ['vault/oauth/user-account.ts pollMs', 'time between looks for what another process renews', 'person', '-'],
    [
      'vault/oauth/user-account.ts replaceMs',
      'time from which a renewed token that is refused is renewed again',
      'person and upstream',
      'the refusal is passed on'
    ],
    ['vault/oauth/user-account.ts retryMs', 'time between failed renewals', 'person and upstream', 'calls fail'],
    ['vault/wrapping/vault-keys.ts keptMs', 'time until the key of a tenant is read again', 'tenant', '-'],
    [
      'vault/wrapping/vault-keys.ts unwrappedMs',
      'time until it is unwrapped again, where it is the same',
      'tenant',
      '-'
    ],
    [
      'vault/wrapping/vault-keys.ts awayMs',
      'time that an opened key is used while its service is away',
      'tenant',
      '503, upstreams of people are unavailable'
    ],
    ['vault/wrapping/aws-kms.ts maxBytes bytes', 'an answer of AWS KMS', 'request', '503'],
    ['vault/wrapping/aws-kms.ts timeoutMs', 'time for such an answer', 'request', 'asked again, then 503'],
    ['vault/wrapping/aws-kms.ts maxAttempts', 'times that it is asked', 'request', '503'],
    [
      'vault/shared-tools.ts ownerMs',
      'time for which the tools of one person are shown to others after they were told last, and not those of somebody else',
      'upstream',
      'whoever lists next is followed'
    ],
    ['vault/vault.ts maxBytes bytes', 'an answer of an authorization server', 'request', 'no token'],
    ['vault/vault.ts timeoutMs', 'time for such an answer', 'request', 'no token'],
    ['vault/oauth/tokens.ts maxTokenLength chars', 'a token, and a refresh token', 'token', 'no token'],
    ['vault/oauth/exchange-request.ts maxAssertionLength chars', 'an identity assertion', 'token', 'no token'],
    [
      'login/login.ts idTokenMarginMs',
      'time before its end from which an ID token is not exchanged',
      'token',
      'a new one'
    ],
    ['vault/oauth/tokens.ts marginMs', 'time before its end from which a token is not used', 'token', 'a new one'],
    ['vault/oauth/discovery.ts maxServers', 'authorization servers that an upstream names', 'upstream', 'no token'],
    [
      'vault/oauth/discovery.ts maxScopesBesides',
      'scopes that refusals name, asked for besides the usual ones',
      'account; upstream with clientCredentials',
      'not asked for; the refusal stays'
    ],
    ['vault/oauth/discovery.ts maxScopes', 'scopes of a challenge', 'upstream', 'the rest is left out'],
    [
      'vault/oauth/client-credentials.ts retryMs',
      'time between failed attempts to get a token',
      'upstream',
      'calls fail'
    ],
    [
      'vault/oauth/client-credentials.ts replaceMs',
      'time from which a token that is refused is replaced',
      'upstream',
      'the refusal is passed on'
    ]
  ],
  'Admin API': [
    ['admin/connection.ts adminSocketLimits.maxHeaderSize bytes', 'all headers together', 'request', '431'],
    [
      'admin/places.ts maxAdminConnections perAdminConnection perNewcomer',
      'connections, and those with a right key',
      'process',
      'the oldest without a right key is closed, else one of the key that has most'
    ],
    ['admin/server.ts maxAdminBody bytes', 'a body', 'request', '413'],
    [
      'admin/answering/answer-text.ts longAnswerBytes bytes',
      'an answer that is sent whole, and does not count for the tenant of its administrator',
      'answer',
      'it is written in steps, and counts'
    ],
    ['admin/changes.ts maxTargetLength chars', 'the path of a refused change in its record', 'record', 'cut off'],
    ['admin/server.ts maxParamLength chars', 'a name in a path', 'request', '404'],
    [
      'admin/access.ts requestsPerAddress',
      'requests without a right key, a second and at once',
      'address, or /64 of IPv6',
      '429'
    ],
    ['admin/access.ts requestsPerKey', 'requests a second, and at once', 'admin key', '429'],
    [
      'admin/access.ts charsPerRequest chars',
      'of a document that a tenant-admin changes or plans, however small the change, count as one request',
      'admin key',
      '429'
    ],
    [
      'admin/access.ts failuresPerMinute',
      'wrong keys a minute',
      'address, or /64 of IPv6',
      '429, and a warning in the log'
    ],
    [
      'admin/access.ts warningsPerMinute',
      'warnings about wrong keys a minute',
      'address, or /64 of IPv6',
      'not logged'
    ],
    ['admin/rates.ts maxCounted', 'addresses, and keys, that are counted', 'process', 'the least recent are forgotten'],
    [
      'admin/console/routes.ts maxSignInBody bytes',
      'a key, or a token, with which somebody signs in',
      'request',
      '413'
    ],
    [
      'admin/console/provider-sign-in.ts signInSeconds',
      'time for which a sign-in at the provider may take',
      'sign-in',
      'begun anew'
    ],
    [
      'admin/console/provider-sign-in.ts sessionOfProviderMs',
      'time for which a sign-in at the provider is good',
      'session',
      'signs in again'
    ],
    [
      'admin/console/provider-sign-in.ts finished',
      'sign-ins that are finished, a second and at once',
      'address, or /64 of IPv6',
      '429'
    ],
    [
      'admin/console/provider-sign-in.ts maxOrigins',
      'origins of the console from which people are sent to the provider',
      'process',
      'metadata of the provider is read again'
    ],
    ['admin/console/sessions.ts sessionMs', 'time for which a browser stays signed in', 'session', 'signs in again'],
    ['admin/console/sessions.ts maxSessions', 'sessions of the console', 'administrator', 'the oldest ends'],
    [
      'admin/console/sessions.ts maxSignedOut',
      'sessions that were signed out and may have streams open',
      'process',
      'streams of the oldest end with their time'
    ],
    [
      'admin/configuration/rule-effects.ts maxCallerNames',
      'callers of today that a rule is said to be about, by name',
      'rule',
      'counted'
    ],
    ['admin/configuration/plan.ts maxBrokenTests', 'tests that a plan says it breaks', 'tenant', 'not told'],
    [
      'admin/callers/callers.ts maxCallers maxCallersOfTenant',
      'callers who are remembered, and those of one tenant',
      'process',
      'whoever called longest ago is forgotten'
    ],
    ['admin/live/processes.ts sayMs', 'time between two signs that it serves', 'process', 'said again'],
    ['admin/live/processes.ts firstSayMs', 'time until it says so first', 'process', 'others know it later'],
    ['admin/live/processes.ts believedMs', 'time for which such a sign is believed', 'process', 'not told any more'],
    [
      'admin/live/processes.ts maxProcesses',
      'other processes that are told',
      'process',
      'the oldest sign is forgotten'
    ],
    ['admin/series/prometheus.ts timeoutMs', 'time for an answer of Prometheus', 'question', '503'],
    ['admin/series/prometheus.ts maxAnswerBytes bytes', 'an answer of Prometheus', 'question', '503'],
    ['admin/series/prometheus.ts maxReads', 'longer series that are read at once', 'process', '429'],
    [
      'admin/series/prometheus.ts wantedSteps shortestStepSeconds',
      'steps of a longer series, and their length at least',
      'series',
      'longer steps'
    ],
    ['admin/series/series-routes.ts longestHours', 'hours of a longer series', 'request', '400'],
    ['observe/call-notes.ts maxSteps', 'steps of a call that are told of it', 'call', 'counted only'],
    ['observe/call-notes.ts maxStepNameChars chars', 'the name of a step', 'step', 'cut off'],
    ['admin/paging.ts maxEntries usualEntries', 'entries, and how many where the request does not say', 'page', '400'],
    ['admin/paging.ts maxCursorLength chars', 'a cursor', 'request', '400'],
    ['admin/clients/past-catalogs.ts maxMoments', 'moments of a catalog that are told', 'request', 'the newest are'],
    ['admin/clients/past-catalogs.ts maxVersionsRead', 'versions that a moment may be in', 'tenant', 'not kept'],
    [
      'admin/discovery/discover-route.ts maxDiscoveries',
      'servers that are looked at, at once',
      'process; a tenant half',
      '429'
    ],
    [
      'admin/discovery/discover-route.ts maxDiscoveryMs',
      'the same, from the first connection on',
      'request',
      'given up'
    ],
    ['admin/discovery/discover-route.ts maxToolNames', 'tools of it that are named', 'request', 'left out'],
    ['admin/discovery/sign-in-hops.ts maxMetadataBytes', 'metadata of it', 'answer', 'given up'],
    ['admin/discovery/sign-in-hops.ts hopMs', 'time for one answer of it', 'request', 'given up'],
    [
      'relay/catalog/past/past-listings.ts maxChangesKept',
      'changes of a listing that are kept',
      'upstream',
      'the oldest goes'
    ],
    ['relay/catalog/past/past-listings.ts maxPastChars chars', 'the same, as JSON', 'upstream', 'the oldest goes'],
    [
      'relay/catalog/offered.ts entriesOfStep',
      'entries of a list to clients that are made in one step',
      'step',
      'the rest in later ones'
    ],
    [
      'relay/catalog/past/past-listings.ts maxOrdered',
      'entries that are compared again with their members sorted',
      'change of a listing',
      'the rest counts as altered'
    ],
    [
      'admin/clients/catalog.ts maxListingWaitMs',
      'wait for upstreams whose lists are not known',
      'request',
      'named as unknown in the answer'
    ],
    ['admin/clients/try.ts maxTries', 'tools that are tried at once; half of them of one tenant', 'process', '429'],
    ['admin/clients/try.ts maxTryMs', 'time of a tool that is tried', 'call', 'cancelled'],
    ['admin/clients/own-way.ts maxCredentialLength chars', 'a credential that is tried', 'request', '400'],
    [
      'admin/clients/doctor.ts maxExaminations',
      'endpoints that are examined at once; half of them of one tenant',
      'process',
      '429'
    ],
    ['admin/clients/doctor.ts examinedMs', 'time of one exchange of an examination', 'exchange', 'told as a fault'],
    ['hosts/own-request.ts maxShownChars', 'an answer of a tool that is tried', 'call', '409, the call was made'],
    ['admin/live/event-streams.ts maxStreams', 'streams of events', 'process', '429'],
    ['admin/live/event-streams.ts maxStreamsPerKey', 'the same', 'admin key', '429'],
    ['admin/live/event-streams.ts maxStreamsPerTenant', 'the same', 'tenant, by its own administrators', '429'],
    [
      'admin/live/event-streams.ts keptStreams',
      'streams of events that are left to administrators of all tenants',
      'process',
      '429'
    ],
    ['admin/live/event-streams.ts maxUnreadBytes bytes', 'events that are not read', 'stream', 'the stream ends'],
    ['admin/live/event-streams.ts recheckMs', 'time until a stream ends whose key was taken away', 'stream', '-'],
    ['admin/live/event-streams.ts keepAliveMs', 'time without any sign of life', 'stream', 'a comment is sent'],
    [
      'admin/live/watch.ts maxEventsSent maxCharsSent shortChars',
      'events that are sent to a listener at another process, and their characters, in a quarter of a second; of these, left to what counts calls that run',
      'stream',
      'dropped, and counted in the stream'
    ],
    ['admin/live/watch.ts maxFarListeners', 'listeners at other processes', 'process', 'they hear nothing from it'],
    ['admin/live/reconnect.ts reconnectWaitMs', 'wait for a new connection', 'request', 'it is told as it is'],
    ['admin/live/usage.ts writeMs', 'time after which what is used is written', 'process', '-'],
    ['admin/live/usage.ts maxToolsCounted', 'tools that are told apart in a day', 'tenant', 'in sums only'],
    ['admin/live/usage-routes.ts maxDays', 'days of usage', 'request', '400'],
    [
      'admin/live/usage-routes.ts maxPartsListed',
      'upstreams, and tools, of an answer',
      'request',
      'those used least are left out'
    ],
    [
      'admin/series/call-steps.ts minutesKept',
      'minutes in which calls are counted by time, 40 KiB for each row',
      'row',
      'forgotten'
    ],
    ['admin/series/series.ts maxTenants', 'tenants whose calls are counted by time', 'process', 'counted together'],
    [
      'admin/series/series.ts maxRows',
      'tenants, endpoints, upstreams and tools that are counted by time',
      'process',
      'counted together'
    ],
    ['admin/series/series.ts maxNames', 'endpoints, upstreams, or tools, of them', 'tenant', 'counted together'],
    ['admin/series/series-routes.ts maxNamesTold', 'names of an answer', 'request', 'told together'],
    ['admin/live/refused-lately.ts maxCounted', 'tenants and limits whose refusals are counted', 'process', 'not told'],
    ['admin/live/problems.ts maxProblemsOfKind', 'problems of an answer', 'kind', 'counted only'],
    [
      'audit/read.ts hashesOfLongLog',
      'records of a run that are told from repeated ones, where all of a long log is verified',
      'run',
      'taken for others'
    ],
    [
      'audit/read.ts segmentsVerified',
      'segments of an audit log that are verified by the admin API',
      'request',
      'older ones are not read, which it says'
    ],
    [
      'admin/audit/audit-routes.ts maxVerifications maxVerificationsByPlatform',
      'audit logs that are verified at once by administrators of tenants, and by those of all',
      'process',
      '429'
    ],
    [
      'admin/audit/audit-routes.ts maxVerificationsOfTenant',
      'of them, those that its own administrators want, and those that others want',
      'tenant',
      '429'
    ],
    [
      'admin/configuration/policy-tests.ts maxRulesTried',
      'rules that the policy tests of an endpoint go through together; as many count as characters of a document',
      'request',
      'the other tests are not run, and say so'
    ],
    ['audit/read.ts segmentsPerPage', 'segments of an audit log that are searched', 'request', 'the page is shorter'],
    ['store/keys.ts usageTtlMs', 'time for which usage is kept', 'tenant', 'forgotten'],
    [
      'store/keys.ts usageProcessesKept',
      'processes whose counts of a day are kept',
      'tenant',
      'the oldest are forgotten'
    ],
    ['control/control.ts pollMs', 'time until a change is looked for that nobody told of', 'process', '-'],
    ['control/control.ts maxAttempts', 'times that a change is judged again', 'change', '409'],
    ['control/document-limits.ts maxDocumentChars chars', 'the configuration of one tenant', 'tenant', '409'],
    ['control/document-limits.ts maxAllChars chars', 'the same of all tenants that the API made', 'store', '409'],
    ['control/document-limits.ts maxDocuments', 'tenants that the API made', 'store', '409'],
    ['control/document-limits.ts maxMembers', 'upstreams, and endpoints, of such a tenant', 'tenant', '409'],
    ['control/idempotency.ts requestsPerDay', 'requests with an Idempotency-Key a day', 'admin key', '409'],
    [
      'admin/configuration/rule-effects.ts maxCoveredNames',
      'names of tools that a rule covers',
      'rule',
      'counted only'
    ],
    [
      'admin/configuration/access-changes.ts maxNamesOfEndpoint',
      'names of each kind that are gained or lost',
      'endpoint',
      'counted only'
    ],
    [
      'admin/clients/past-catalogs.ts maxPastReadings',
      'catalogs of moments that are over that are read at once, half of them for one tenant',
      'process',
      '429'
    ],
    [
      'admin/configuration/access-changes.ts maxCallersTold',
      'callers who gain or lose something, in a plan',
      'endpoint',
      'counted only'
    ],
    [
      'admin/configuration/access-changes.ts maxNamesOfCaller',
      'names of each kind that a caller gains or loses',
      'caller',
      'counted only'
    ],
    [
      'admin/configuration/planned/caller-classes.ts maxLooksOfPlan',
      'rules that a plan compares callers and entries of lists with, once for all callers whom the same rules are about',
      'plan',
      'further callers are counted as not looked at'
    ],
    ['admin/configuration/versions.ts maxTenantsAtOnce', 'tenants of a plan, and of what is applied', 'request', '400'],
    ['control/kills.ts maxKills', 'kill switches', 'tenant', '409'],
    ['control/kills.ts maxKillChars chars', 'kill switches as JSON', 'tenant', '409'],
    ['control/idempotency.ts maxIdempotencyKey chars', 'an Idempotency-Key', 'request', '409'],
    [
      'control/idempotency.ts maxKeptAnswer chars',
      'an answer that is kept for its Idempotency-Key',
      'request',
      'that it was given is kept; sent again, 409'
    ],
    ['store/keys.ts requestTtlMs', 'time for which an answer is repeated', 'request', 'it is done again'],
    ['store/keys.ts versionsKept', 'versions that are kept of all', 'store', 'the oldest are forgotten'],
    ['store/keys.ts versionsPerTenant', 'versions that are kept besides', 'tenant', 'its oldest are forgotten'],
    [
      'store/keys.ts removedNamesKept',
      'removed tenants and kill lists with versions',
      'store',
      'the oldest are forgotten'
    ],
    [
      'policy/call-limits.ts maxBucketsTold',
      'buckets of limits of calls of which it is told how full they are',
      'process',
      'those used before count as unused'
    ],
    [
      'policy/call-limits.ts maxFound',
      'callers and what they call, of which the limits are remembered',
      'tenant',
      'all are forgotten, and found anew'
    ],
    [
      'admin/live/running.ts lookMs',
      'time between two looks at calls that run',
      'process',
      'what ends before is not told as running'
    ],
    ['admin/live/running.ts fromMs', 'time from which on a call is told as running', 'call', 'it is told as it ends'],
    [
      'admin/live/running.ts maxCallsTold',
      'calls that are told as running',
      'tenant and process',
      'the others are counted'
    ],
    [
      'admin/answering/exported.ts stalledMs pieceBytes',
      'time in which so much of an export, or of a long answer, is read on',
      'answer',
      'it is cut off'
    ],
    [
      'admin/configuration/planned/endpoint-plans.ts maxToldNamed',
      'sessions that a plan names of those that are told',
      'plan',
      'the others are counted'
    ],
    [
      'store/keys.ts sessionsLookedAt',
      'sessions that a plan, a kill switch of a caller, and what a tenant uses, look at',
      'tenant',
      'those opened before are left out'
    ]
  ],
  'Messages from clients': [
    [
      'http/modern/known-capabilities.ts maxKnown',
      'declarations of clients of 2026-07-28 that are remembered',
      'process',
      'what follows from it is found out for each call'
    ],
    [
      'http/modern/known-capabilities.ts maxKnownChars chars',
      'the text of such',
      'request',
      'what follows from it is found out for each call'
    ],
    ['http/server.ts socketLimits.maxHeaderSize bytes', 'all headers together', 'request', '431'],
    [
      'http/direct/direct-connections.ts maxDirectBytes bytes',
      'a request that is read from its socket',
      'request',
      "it is Node's"
    ],
    ['http/direct/direct-connections.ts maxDirectHead bytes', 'the headers of such', 'request', "it is Node's"],
    [
      'http/direct/direct-connections.ts maxHeldBytes bytes',
      'the first half of such, and what comes after it',
      'connection',
      "it is Node's, or waits in the system"
    ],
    ['http/direct/request-head.ts maxFields', 'header fields of such', 'request', "it is Node's"],
    ['http/direct/direct-connections.ts secondHalfMs', 'wait for its second half', 'request', "it is Node's"],
    ['http/headers.ts maxParamHeaders', '`Mcp-Param-*` headers', 'request', '400'],
    ['http/modern/modern-listen.ts maxRequestBytes', 'the body of `subscriptions/listen`', 'request', '413'],
    ['protocol/json.ts maxDepth', 'levels of nested JSON', 'message', '400'],
    ['protocol/json.ts maxValues', 'JSON values', 'message', '400'],
    ['protocol/json-scan.ts maxInexact', 'numbers that no double holds', 'message', '400'],
    ['protocol/json-scan.ts maxMembers', 'members', 'object of a message', '400'],
    [
      'time/turns.ts turnMs',
      'reading of messages and writing of answers in one turn of the event loop',
      'process',
      'the rest waits for a later turn: tenants take turns, and the callers of each'
    ],
    [
      'time/turn-shares.ts shareMs',
      'what is begun or read in one turn of the event loop while more than one tenant has work; as much of long messages',
      'tenant',
      'the rest waits for a later turn, and its connections are not read'
    ],
    [
      'http/direct/usual-requests.ts partMs',
      'what a part of a body counts before it is read',
      'part',
      'taken from the share'
    ],
    ['time/turn-shares.ts maxDebtMs', 'of it what is taken from later shares', 'tenant', 'forgiven'],
    [
      'time/turn-shares.ts sharedMs',
      'time since another tenant had work in which turns are shared',
      'process',
      'one tenant has all of each turn'
    ],
    ['protocol/json-scan.ts maxNumberLength chars', 'a number', 'message', '400'],
    ['protocol/envelope.ts maxCapabilitiesBytes', 'declared capabilities', 'request or session', 'refused as invalid'],
    ['auth/bearer.ts maxTokenBytes', 'an access token or key', 'request', '401; nothing of it is decoded'],
    ['relay/call/call.ts maxTokenLength chars', 'a progress token', 'call', 'refused as invalid']
  ],
  'Audit log': [
    ['audit/syslog.ts maxSendMs', 'wait for a syslog server to take records', 'write', 'it is tried again'],
    ['observe/otlp/send-logs.ts maxAnswerMs', 'wait for the answer of a collector', 'write', 'it is tried again'],
    ['observe/otlp/send-logs.ts maxAnswerBytes', 'that answer', 'write', 'it is tried again'],
    [
      'audit/refusals.ts refusalsPerSecond',
      'records of refused requests a second',
      'caller, or all who were not let in, of a tenant and process',
      'counted in the next record, within a minute'
    ],
    ['audit/refusals.ts refusalsAtOnce', 'records of refused requests at once', 'the same', 'the same'],
    [
      'audit/refusals.ts maxSources',
      'callers whose refused requests are counted on their own',
      'tenant and process',
      'counted with those who were not let in'
    ],
    ['audit/chain.ts checkpointMs', 'time until records are signed', 'tenant and process', '-'],
    ['audit/chain.ts recordsPerSignature', 'records until one is signed', 'tenant and process', '-'],
    [
      'audit/writes.ts maxWriteMs',
      'how long a call that must be recorded waits for its record',
      'call',
      'it is answered, and no other is let through until records are written again'
    ],
    [
      'observe/metrics/label-names.ts maxPerTenant',
      'names of tools and prompts, upstreams, and codes of errors, in metrics',
      'tenant',
      'those without a call for a while make room; else counted together, as `other`'
    ],
    [
      'observe/metrics/call-series.ts idleMs lookEveryMs',
      'time without a call after which a series makes room; between two looks for such',
      'series',
      'removed where places are wanted'
    ],
    [
      'observe/metrics/call-series.ts maxSeriesPerTenant',
      'series of one metric with names of tools, prompts, upstreams and endpoints, and codes',
      'tenant',
      'counted with all of these as `other`'
    ],
    [
      'observe/metrics/call-series.ts maxSeries',
      'series of one metric',
      'process',
      'counted together, with the label `otel_metric_overflow`'
    ],
    [
      'observe/metrics/exemplars.ts maxSeriesWithExemplars',
      'series that keep the trace of the last call of each bucket',
      'process',
      'the tenant that has most gives one away'
    ],
    [
      'observe/metrics/exemplars.ts maxWithExemplarsOfTenant',
      'of them, those of one tenant',
      'tenant',
      'its others keep none'
    ],
    ['observe/metrics/metrics.ts maxAnswers', 'metrics that are being read', 'process', '429'],
    [
      'observe/lines/stranger-lines.ts linesPerSecond',
      'lines of the log about requests of whoever is not let in, half of them for one address',
      'process',
      'at level `debug`; a warning says how many'
    ],
    ['observe/lines/stranger-lines.ts linesAtOnce', 'of them at once', 'process', 'the same'],
    ['observe/other-requests.ts maxMessageChars chars', 'the method of a notification in the log', 'line', 'cut off'],
    ['observe/other-requests.ts maxMessages', 'methods of a batch in the log', 'line', 'left out'],
    [
      'upstream/stdio/child-stderr.ts maxEarlyLines',
      'lines of standard error held during a start',
      'process of a server',
      'the oldest are at debug'
    ],
    ['observe/calls.ts maxLoggedChars chars', 'an error, path, host or origin in the log', 'line', 'cut off'],
    [
      'upstream/rpc/stray-lines.ts quietMs',
      'between two log lines about what a server over stdio writes that is no message',
      'upstream',
      'counted'
    ],
    [
      'upstream/stdio/child-stderr.ts tellMs',
      'between two log lines about lines of standard error that are left out',
      'process of a server',
      'counted'
    ],
    [
      'upstream/pool/lost-connections.ts tellMs',
      'between two log lines about connections that ended by themselves',
      'upstream',
      'counted'
    ],
    ['upstream/rpc/stray-lines.ts maxServers', 'servers whose stray lines are counted', 'process', 'forgotten'],
    ['observe/call-text.ts maxUriChars chars', 'the URI or template of a resource in the log', 'line', 'cut off'],
    [
      'observe/call-text.ts maxMadeUpChars chars',
      'the name of a tool or prompt that a server which is away never listed, in the log',
      'line',
      'cut off'
    ],
    ['audit/entries/call-entry.ts maxNameChars chars', 'the name or URI in a record', 'record', 'cut off'],
    [
      'audit/entries/call-entry.ts maxArgumentChars chars',
      'recorded arguments',
      'record',
      'left out; their hash stays'
    ],
    [
      'audit/writes.ts maxWaitingOfTenant chars',
      'records that cannot be written',
      'tenant and process',
      'lost, and their number is recorded; calls of a tenant that requires records are refused'
    ],
    ['audit/writes.ts maxWaitingOfProcess chars', 'the same', 'process', 'the same'],
    [
      'audit/segments.ts segmentChars chars',
      'records that the store keeps and deletes together',
      'segment',
      'a new one'
    ],
    ['audit/segments.ts headsKept', 'ends of other runs that are remembered', 'tenant', 'the oldest is forgotten'],
    ['audit/verify.ts hashesKept', 'records among which a repeated one is known', 'run', 'it counts as altered'],
    ['audit/segments.ts headsPerRecord', 'ends of other runs that are named', 'record', 'named by a later one'],
    ['audit/verify.ts maxListed', 'problems and notes that are listed', 'verification', 'not listed'],
    ['observe/traces/traces.ts maxQueuedSpans', 'spans that wait to be sent', 'process', 'lost, and counted'],
    [
      'observe/traces/traces.ts maxSpansAtOnce',
      'spans in one message to the collector',
      'message',
      'sent with the next'
    ],
    ['observe/traces/traces.ts sendMs', 'answer of the collector', 'message', 'its spans are lost, and counted'],
    [
      'observe/otlp/log-export.ts maxWaitingLines',
      'lines of the log that wait to be sent',
      'process',
      'lost, and counted'
    ],
    ['observe/otlp/log-export.ts maxWaitingBytes bytes', 'the same', 'process', 'the same'],
    [
      'observe/otlp/log-export.ts maxLinesAtOnce',
      'lines in one message to the collector',
      'message',
      'sent with the next'
    ],
    ['observe/otlp/metric-export.ts maxPointsAtOnce', 'points in one message', 'message', 'sent in the next'],
    ['observe/otlp/metric-export.ts sendMs', 'answer of the collector', 'message', 'its points are lost, and counted'],
    [
      'observe/log.ts maxHeldChars chars',
      'lines of the log that wait some milliseconds to be written',
      'process',
      'written at once'
    ],
    [
      'observe/calls.ts maxHeldBytes',
      'request whose call has its line made, and is counted, a moment after it has ended, and is held until then',
      'call',
      'made and counted at once'
    ],
    ['observe/counted-later.ts maxWaiting', 'ended calls that are not counted yet', 'process', 'counted at once'],
    [
      'upstream/stdio/warm-children.ts maxUnreadBytes',
      'what a process that waits may write before it is asked anything',
      'process',
      'it is ended'
    ],
    ['observe/samples.ts maxSampleChars chars', 'sampled arguments, and a sampled result', 'line', 'cut'],
    ['http/server.ts cutMs', 'time after `limits.drainMs` for answers to calls that were ended', 'process', 'cut'],
    ['observe/telemetry.ts lastSendMs', 'wait for the collector when the gateway ends', 'process', 'the rest is lost'],
    ['cli/store/verify.ts maxLineChars chars', 'a line that is verified', 'line', 'reported']
  ],
  Memory: [
    [
      'limits/memory.ts shareDivisor',
      'part of the memory for calls that one tenant may hold (one in so many), and one caller of that',
      'tenant; caller',
      '`too_many`'
    ],
    ['limits/memory.ts idleBytes', 'part of `limits.memoryBytes` that the gateway itself takes', 'process', '-'],
    [
      'limits/memory.ts garbageFactor',
      'how many times what is held may be in memory, before the collector has run',
      'process',
      '-'
    ],
    [
      'limits/memory.ts heapGrowthPercent',
      "growth of Node's heap between two collections, in percent, where the heap could outgrow `limits.memoryBytes`",
      'process',
      'the collector runs'
    ],
    ['limits/memory.ts usableHeap', "part of Node's heap limit that is used", 'process', '-'],
    ['limits/memory.ts leastBudgetBytes', 'least memory for calls', 'process', '-'],
    [
      'limits/process-memory.ts defaultMemoryPart',
      '`limits.memoryBytes` by default: part of the memory there is',
      'process',
      '-'
    ],
    ['http/request-memory.ts requestOverheadBytes', 'counted beside body and answer', 'request', '`too_many`'],
    [
      'http/request-memory.ts readFactor',
      'how many times its length is counted while it is read',
      'body',
      '`too_many`'
    ],
    [
      'http/request-memory.ts smallBodyBytes denseFactor',
      'up to this length, so many times its length is counted',
      'body',
      '`too_many`'
    ],
    [
      'limits/incoming-memory.ts messageFactor',
      'how many times its length is counted while it comes in',
      'message of an upstream',
      '`too_many` for its call'
    ],
    ['limits/incoming-memory.ts smallMessageBytes', 'not counted up to this length', 'message of an upstream', '-'],
    ['session/live-sessions.ts sessionBytes', 'counted', 'session in use', '`too_many`'],
    [
      'relay/tasks/session-task-ids.ts taskBytes',
      'counted beside its ids',
      'task of a session that is followed',
      'not followed'
    ],
    [
      'relay/subscriptions/subscription-index.ts subscriptionOverheadBytes',
      'counted beside its URIs',
      'subscription of a session',
      '`too_many`'
    ],
    [
      'relay/catalog/cache/catalog-cache.ts bytesPerEntry bytes',
      'counted beside its URI',
      'entry of a catalog that is kept',
      'built again for each call'
    ],
    ['relay/catalog/cache/catalog-cache.ts smallBytes', 'not counted up to this length', 'catalog that is kept', '-'],
    [
      'limits/memory.ts bytesPerChar bytes',
      'counted for text that waits: events, messages to servers, results of parked calls',
      'character',
      'dropped or refused, as the limit of each says'
    ]
  ],
  'Streams to clients': [
    ['http/direct/moving.ts maxMoves', 'moves from worker to worker', 'connection', 'it stays'],
    [
      'workers/connection-moves.ts maxUnderWay',
      'connections on their way to other workers',
      'worker',
      'they stay until a later request'
    ],
    [
      'workers/connection-relay.ts maxUnderWay',
      'connections on their way to one worker, of all others',
      'worker',
      'they stay'
    ],
    [
      'workers/connection-moves.ts takeMs',
      'wait for the worker that is to take it, which does so in the first half',
      'connection',
      'it is closed'
    ],
    [
      'http/sockets.ts maxClientConnections',
      'connections of clients; no more than half of the open files that the process may have',
      'process',
      'one without a token is closed, else one of whoever has most; 429'
    ],
    [
      'http/rates/request-rates.ts burstSeconds',
      'seconds whose requests (`limits.requestsPerSecond...`) may come at once',
      'caller; tenant',
      '429'
    ],
    ['http/rates/request-rates.ts refusedAfterMs', 'time until that refusal is sent', 'request', 'sent'],
    [
      'http/rates/request-rates.ts refusalGapMs',
      'time between two of these refusals, while they wait no longer than twice that time',
      'request',
      'sent'
    ],
    [
      'http/rates/throttle.ts burstMs',
      'time whose bytes and sessions (`limits.bodyBytesPerSecond...`, `limits.sessionsPerSecond...`) may come at once',
      'caller; tenant',
      'the next ones wait, up to `limits.queueMs`; then 429'
    ],
    [
      'http/rates/throttle.ts maxKept',
      'callers and tenants whose long bodies and sessions are counted',
      'process',
      'who came least recently may send a burst again'
    ],
    ['http/rates/throttle.ts maxBodyWaitMs', 'wait of a long body, whatever `limits.queueMs` is', 'body', '429'],
    ['http/rates/throttle.ts waitingBytes', 'counted for it while it waits, with its request', 'body', '`too_many`'],
    ['http/rates/request-rates.ts maxWaitingRefusals', 'refusals that wait so', 'process', 'sent at once'],
    [
      'http/sockets.ts memoryPerConnection bytes',
      'part of the memory for calls that leaves room for one more connection',
      'process',
      'the same'
    ],
    [
      'limits/counted-pieces.ts maxSmallPieces maxUnreadPieces leastPieceBytes',
      'pieces (chunks) of a body, however small; of one that was answered already; beyond these, their size on the average',
      'request',
      '413, and closed'
    ],
    [
      'http/request-turns.ts maxBegunPerTurn',
      'requests that are begun in one turn of the event loop',
      'process',
      'the rest waits for later turns: tenants take turns, and the callers of each'
    ],
    [
      'time/turn-shares.ts manyStrangers',
      'requests of strangers in a second from which on a lone tenant shares turns of the event loop with them',
      'process',
      'strangers take turns'
    ],
    ['http/headers.ts maxListChars', 'a list in a header, as `Accept`', 'request', 'the rest is not read'],
    [
      'http/revalidation.ts checkedPerTurn',
      'open streams and calls whose callers are checked in one turn of the event loop',
      'process',
      'the rest follows in later turns'
    ],
    [
      'time/loop-delay.ts sampleMs samples',
      'how late the event loop is (between two samples; samples that must all be late)',
      'process',
      'counts as waited (`limits.queueMs`)'
    ],
    [
      'http/one-by-one.ts maxWaitingRequests',
      'requests that come at once: one is begun in each turn of the event loop',
      'connection',
      'closed'
    ],
    [
      'http/reply.ts refusedBodyMs maxRefusedBytes',
      'pause of a refused client in what it still sends; how much of it is read',
      'connection',
      'closed'
    ],
    [
      'http/backlog.ts maxBacklogBytes',
      'answers that wait to be read',
      'session or modern caller',
      '429 for further requests'
    ],
    ['http/backlog.ts smallBacklogBytes', 'unread bytes that are not counted at all', 'connection', 'counted'],
    [
      'http/reply.ts maxQueuedBytes',
      'unread progress and log messages of a modern call',
      'connection',
      'left out; the result never is'
    ],
    ['http/backlog.ts stalledMs', 'time without any progress of the reader', 'connection', 'closed'],
    [
      'http/backlog.ts slowestBytesPerSecond bytes',
      'what a reader has to take of its backlog, per second, on the whole',
      'connection',
      'closed'
    ],
    ['http/legacy/streams.ts quietMs', 'silence before a call is answered by a stream', 'call', 'the stream begins'],
    ['http/reply.ts usualRetryMs', '`retry` for a stream that was cut', 'stream', 'the client comes back'],
    [
      'session/session-end.ts maxEnded',
      'sessions whose end is remembered, so that nobody who read one of them before brings it back',
      'process',
      'the longest ago is forgotten'
    ],
    ['session/streams.ts leaveRetryMs', '`retry` when the gateway stops', 'stream', 'the client comes back'],
    [
      'session/replay.ts firstWaitMs longestWaitMs',
      'first and longest wait, each the double of the one before, for the end of a stream of a session at another process, whose client has come back here',
      'stream',
      'what comes on the old one later is left out'
    ],
    ['session/held-events.ts maxHeld chars', 'events held for resumption', 'stream', 'the oldest are dropped'],
    [
      'session/held-events.ts freeForRequests',
      'memory of a caller that held events leave for its requests',
      'stream',
      'its events are not held, and its connection is closed'
    ],
    [
      'session/stream.ts maxBehind chars momentMs',
      'how far, and how long, a reader may be behind',
      'connection',
      'closed; the stream can be resumed'
    ],
    [
      'session/event-copies.ts defaultLimits chars',
      'events on their way to the store',
      'session; process (at most an eighth of limits.memoryBytes): half of it a tenant, a quarter a caller',
      'not stored'
    ],
    ['session/event-copies.ts maxPerSession', 'resumptions from the store at once', 'session', '429'],
    ['store/keys.ts eventsKept', 'events in the store', 'stream', 'the oldest are dropped'],
    ['store/keys.ts eventsTtlMs', 'life of events in the store after the last one', 'stream', 'cannot be resumed']
  ],
  'Sessions and conversations': [
    [
      'session/session-epochs.ts perEpoch',
      'sessions that their clients end, ever',
      'tenant',
      'all its sessions end once; the count begins again'
    ],
    [
      'store/keys.ts tenantsKept',
      'tenants remembered that a store was used for',
      'store',
      'the sessions of the oldest do not end where it was removed while no gateway ran'
    ],
    ['session/session-limit.ts guesses', 'slots tried one after the other', 'new session', 'all slots are looked at'],
    ['session/session-limit.ts maxLooks', 'slots looked at in one go', 'new session', '429, somewhat early'],
    [
      'session/session-limit.ts fullMs',
      'time for which a caller without a free slot is not looked at again',
      'caller',
      'looked at again'
    ],
    [
      'session/unfinished.ts maxUnfinished',
      'sessions and their places that are given up when the store is back',
      'process',
      'the newest stay until they idle out'
    ],
    ['session/unfinished.ts againMs', 'pause before that is tried again', 'process', 'tried again'],
    ['session/session-limit.ts maxFullOwners', 'callers remembered as full', 'process', 'the oldest are forgotten'],
    [
      'relay/connections/kept-sessions.ts maxKeptLength chars',
      'a session at a server over HTTP that is kept for the next process',
      'session and upstream',
      'ends with its process'
    ],
    [
      'relay/connections/kept-sessions.ts longestRenewMs',
      'time until the record of such a session is renewed, which is a tenth of its idle time at most',
      'session and upstream',
      '-'
    ],
    [
      'relay/connections/borrowers.ts lentMs',
      'time for which such a session is lent to another process, which asks again after half of it',
      'session, upstream and process',
      'calls go to the home of the session'
    ],
    [
      'relay/connections/borrowers.ts maxSeries',
      'series of ids of such a process, by which progress finds it',
      'session, upstream and process',
      'the oldest are forgotten'
    ],
    [
      'relay/connections/overheard.ts toldPerSecond',
      'what a server says on the stream of such a session that these processes are told',
      'session and upstream',
      'stays at the home of the session'
    ],
    ['relay/connections/overheard.ts toldBurst', 'the same, at once', 'session and upstream', 'the same'],
    ['relay/connections/overheard.ts maxToldBytes', 'one of these messages', 'message', 'the same'],
    [
      'relay/connections/borrowed-sessions.ts lookMs',
      'time between looks whether calls have ended in sessions of a process that stops',
      'process',
      '-'
    ],
    [
      'relay/connections/borrowed-sessions.ts callsAtHome',
      'call with which a process that is not the home asks for it',
      'session, upstream and process',
      '-'
    ],
    [
      'relay/connections/borrowed-sessions.ts refusedMs',
      'time until it asks again, where nothing was lent',
      'session, upstream and process',
      '-'
    ],
    [
      'relay/connections/borrowed-sessions.ts unusedMs',
      'time without calls until its connection is closed',
      'session, upstream and process',
      'closed'
    ],
    [
      'relay/connections/borrowed-sessions.ts soonMs',
      'the same, where the home has not opened yet what it can lend',
      'session, upstream and process',
      '-'
    ],
    [
      'upstream/http/streamable-session.ts firstStreamMs',
      'wait of the first call for the GET stream of its upstream session, where the client can be asked',
      'session and upstream',
      'called all the same'
    ],
    [
      'relay/connections/ended-sessions.ts ownersFirstMs',
      'time after the end of a session until what is left of it at servers over HTTP is ended',
      'session',
      '-'
    ],
    [
      'relay/connections/ended-sessions.ts maxWaiting',
      'ended sessions that wait for that',
      'tenant and process',
      'left to the idle time of the servers'
    ],
    ['relay/connections/ended-sessions.ts maxAtOnce', 'of these, at a time', 'tenant and process', 'wait'],
    [
      'store/keys.ts upstreamSessionsListed',
      'sessions for which servers over HTTP keep one, that are looked through when callers are gone',
      'tenant',
      'those of before are left to the idle time of the servers'
    ],
    ['session/sessions.ts copyMs', 'age of a copy of a session record', 'process', 'read from the store again'],
    ['session/sessions.ts soleCopyMs', 'the same with a store of its own', 'process', 'read from the store again'],
    ['session/sessions.ts maxCopies', 'copies of session records', 'process', 'the oldest are dropped'],
    [
      'session/bus/bus-places.ts maxRequests',
      'requests to and from other processes at a time; as many answers of clients and the like beside them',
      'process; a tenant has a quarter, a caller a sixteenth',
      '429'
    ],
    [
      'session/bus/bus-places.ts fewDivisor fewReserve',
      'of these: who has fewer than one in so many; the part that is left to such tenants, one in so many',
      'tenant',
      '429'
    ],
    ['session/bus/wire/bus-messages.ts staleMs', 'age of a message between processes', 'message', 'ignored'],
    [
      'session/bus/wire/bus-messages.ts maxChars chars',
      'a message between processes',
      'message',
      'a request is sent in parts; an answer is an error, and what is told is left out'
    ],
    [
      'session/bus/wire/bus-batches.ts maxBatchChars chars',
      'messages of one turn of the event loop that leave for a process together',
      'process',
      'the next ones leave after them'
    ],
    [
      'session/bus/wire/bus-heard.ts latelyMs',
      'time since a process was heard, within which a call there is begun without asking it first',
      'process',
      'it is asked first: four messages in place of two'
    ],
    [
      'session/bus/wire/bus-heard.ts youngMs',
      'age of a question of another process that is begun at once',
      'question',
      'its sender is asked whether it still waits'
    ],
    [
      'session/bus/wire/bus-heard.ts maxHeard',
      'processes of which it is known when they were heard',
      'process',
      'the one heard longest ago is asked first'
    ],
    [
      'session/bus/bus-outbox.ts maxRetryMs retryMs',
      'what a process says of a request is said again while the store is away (for; every)',
      'request',
      'the other process counts this one as gone'
    ],
    [
      'session/bus/bus-outbox.ts maxWaiting',
      'messages ahead of an answer that wait until those before have left',
      'request',
      'left out'
    ],
    [
      'http/legacy/session-homes.ts maxProgressBytes bytes',
      'what a call waits to say to another process, beyond which its progress is left out',
      'request',
      'left out'
    ],
    [
      'session/bus/wire/bus-reading.ts longChars chars',
      'a message of another process that is read in one step',
      'message',
      'it is read in steps, at the expense of its caller'
    ],
    [
      'session/bus/wire/bus-flow.ts shortChars chars',
      'a message to another process that does not wait for long ones',
      'message',
      'it waits for its turn: tenants take turns, and the callers of each'
    ],
    [
      'session/bus/wire/bus-flow.ts maxUnreadChars chars confirmMs',
      'long messages to another process that it has not read, and short ones; how long it is waited for',
      'process',
      'the next ones wait for their turn'
    ],
    [
      'session/bus/bus-server.ts smallBytes',
      'a question of another process that is not refused for want of memory',
      'message',
      'it is refused where there is none'
    ],
    [
      'session/bus/left-out.ts quietMs',
      'time between two log lines that messages between processes are left out',
      'tenant',
      'counted in the next one'
    ],
    [
      'session/bus/left-out.ts maxTenants',
      'tenants for which those are counted',
      'process',
      'the one that had none for longest is counted anew'
    ],
    [
      'session/elsewhere/session-bus.ts maxReasonChars chars',
      'the reason of a cancellation, as other processes are told it',
      'message',
      'the rest is left out'
    ],
    [
      'session/bus/bus-kept.ts keptMs maxKeptBytes',
      'answers, and what was said ahead of answers, kept for processes that missed it (for; of each of both)',
      'process',
      'the outcome is unknown; messages ahead of an answer are left out'
    ],
    [
      'session/bus/wire/bus-peers.ts checkMs',
      'interval at which a process is asked whether it is there, while it is waited for',
      'process',
      '-'
    ],
    [
      'session/bus/wire/bus-peers.ts maxUnanswered',
      'times in a row that a process does not answer that',
      'process',
      'it counts as gone: its calls end with `outcome: unknown`'
    ],
    [
      'session/bus/wire/bus-peers.ts maxAbsences',
      'times in a row that nobody listens for a process',
      'process',
      'it counts as gone: its calls end with `outcome: unknown`'
    ],
    [
      'session/bus/wire/bus-peers.ts maxKnown',
      'other processes that are known',
      'process',
      'the one that was heard longest ago is tried once, as one that is not known'
    ],
    [
      'session/bus/wire/bus-flow.ts maxKnown',
      'other processes whose answers to beats are counted',
      'process',
      'they are counted anew: long messages to it may wait for two seconds'
    ],
    [
      'session/bus/bus-retries.ts maxRetryMs retryMs maxGone',
      'the answer to a server request, and a POST of HTTP+SSE, are sent again to their process (for; every), unless that counts as gone so often',
      'request',
      'refused'
    ],
    [
      'session/bus/bus-retries.ts maxTellMs tellMs',
      'a process is told that one of these was refused, until it hears (for; every)',
      'request',
      'what it asked ends by time'
    ],
    [
      'session/bus/bus-retries.ts maxTold',
      'refusals that are to be told; a quarter of them of one tenant, and a sixteenth of one caller',
      'process',
      'what was asked ends by time'
    ],
    [
      'session/elsewhere/remote-stream.ts announcedMs',
      'time in which a process has to say again that a client of the session listens there',
      'session',
      'it counts as not listening'
    ],
    [
      'session/elsewhere/remote-stream.ts retryMs maxRetryMs',
      'interval at which a message for a stream at another process is sent again while nobody hears it, and how long',
      'session',
      'it waits for the stream that takes its place'
    ],
    [
      'session/elsewhere/undelivered.ts maxMessages maxBytes',
      'messages for the stream of a session that are not on it yet, and their size',
      'session',
      'the oldest are left out'
    ],
    [
      'session/live-sessions.ts expectedMs',
      'time for which a new home keeps what is for the stream of a session that no process has announced yet',
      'session',
      'it is left out'
    ],
    [
      'session/elsewhere/session-bus.ts maxRemoteStreams',
      'streams at other processes that are known',
      'process',
      'the one heard of longest ago is forgotten until it is announced again'
    ],
    [
      'session/elsewhere/session-bus.ts tellAllPerSecond tellAllBurst',
      'cancellations that every process is told of, because the call is not where they came',
      'person',
      'only the home of the session is told'
    ],
    [
      'session/elsewhere/session-bus.ts maxTellers',
      'persons whose cancellations are counted',
      'process',
      'the one who cancelled longest ago is counted anew'
    ],
    [
      'session/bus/long-questions.ts partChars chars',
      'part of an answer, or of a request that is longer than a message, in one message between processes',
      'message',
      'the rest follows in others'
    ],
    [
      'http/legacy/session-homes.ts maxHomes',
      'processes that are tried for a request of a session, each in place of one that is gone',
      'request',
      '503'
    ],
    [
      'relay/connections/conversation-limit.ts sweepEveryMs',
      'interval at which idle conversations are looked for',
      'process',
      'their slot is free again'
    ]
  ],
  'Server requests and input requests': [
    ['upstream/rpc/server-requests.ts limitOfCall', 'server requests', 'call', 'refused: ask less often'],
    [
      'upstream/rpc/server-requests.ts limitOfConnection',
      'server requests',
      'upstream connection',
      'refused: ask less often'
    ],
    [
      'limits/limits.ts bytesPerValue',
      'memory counted for each JSON value and name beside its text',
      'server request',
      '-'
    ],
    [
      'relay/bridge/input-loop.ts maxRounds',
      "retries of a session's call at a modern server",
      'call',
      'the call ends with an error'
    ],
    ['relay/bridge/input-loop.ts stateOnlyMs', 'pause before a retry without input responses', 'call', 'sent again'],
    ['relay/client/ask-session.ts maxRequests', 'input requests in one result', 'call', 'the call ends with an error'],
    ['relay/client/client-errors.ts maxUrls', 'pages of an error -32042', 'call', 'left out'],
    ['relay/client/client-errors.ts maxMessage chars', 'what is said of one of these pages', 'page', 'cut'],
    ['relay/bridge/url-retry.ts maxPages', 'pages of an error -32042 for a modern client', 'call', 'left out'],
    [
      'relay/client/pending-inputs.ts gatherMs maxGatherMs',
      'silence that ends the gathering of server requests into one `input_required`; all of it',
      'call',
      'the next retry has them'
    ],
    [
      'session/parked-calls.ts defaultLimits',
      'parked calls',
      'person, tenant, process',
      'the oldest round is given up'
    ],
    [
      'relay/bridge/connect-wait.ts connectWaitMs',
      'time for the page of connections',
      'call that came back from it',
      'the client is asked again'
    ],
    [
      'vault/oauth/account-client.ts trustedMs',
      'a client registered anew is not asked about',
      'authorization server',
      'who connects may have another one registered'
    ],
    ['session/parked-calls.ts parkedMs', 'time to retry', 'parked call', 'given up: `invalid_state`'],
    [
      'session/parked-calls.ts longestParkedMs',
      'time from the first server request to the end',
      'parked call',
      'given up: `invalid_state`'
    ],
    [
      'session/parked-calls.ts maxLost',
      'calls that were given up and are remembered with the reason',
      'process',
      'the reason is not told'
    ],
    [
      'relay/bridge/parking.ts keptChars',
      'server requests and results of parked calls',
      'call; person; tenant; process',
      'refused; results are dropped'
    ],
    [
      'relay/bridge/parking.ts storedChars',
      'a result that waits for the retry',
      'parked call',
      'the call has to be made again'
    ],
    [
      'relay/methods/modern-forward.ts maxStateChars',
      'what a modern server gives a modern client as its `requestState`',
      'result',
      'the call ends with an error'
    ],
    ['relay/bridge/request-state.ts lifetimeMs', 'life of a request state', 'request state', '`invalid_state`'],
    [
      'upstream/rpc/server-requests.ts defaultLimits bytes',
      'memory of server requests that wait for an answer',
      'request; connection; upstream; tenant; process',
      'refused: -32602 or 429'
    ]
  ],
  Tasks: [
    [
      'relay/tasks/open-tasks.ts limits',
      'tasks of legacy servers that are followed',
      'person; tenant; process',
      'the longest unpolled of the person with most tasks is followed no longer'
    ],
    [
      'relay/tasks/open-tasks.ts unansweredMs',
      'time for a client to ask for its task',
      'task',
      'its server requests are declined'
    ],
    ['relay/tasks/open-tasks.ts unpolledMs', 'time that its connection is kept after that', 'task', 'closed'],
    [
      'relay/tasks/open-tasks.ts firstRequestMs nextRequestMs',
      'wait for server requests of a task',
      'request',
      'shown with the next request'
    ],
    ['relay/tasks/modern-for-session.ts maxStoredBytes', 'a stored result of a task', 'task', 'an error that says so'],
    ['relay/tasks/modern-for-session.ts cancelledSlots', 'stored cancellations', 'person', 'the oldest are replaced'],
    [
      'relay/tasks/modern-for-session.ts maxResultTtlMs',
      'life of a result of a call that ended at once',
      'task',
      'no such task'
    ],
    ['relay/tasks/await-task.ts cancelMs', 'cancellation of such a task', 'request', 'given up'],
    ['relay/tasks/await-task.ts maxFailures', 'failed polls in a row', 'request', 'an error'],
    ['relay/tasks/await-task.ts maxInputRounds', 'input requests while one request waits', 'request', 'an error'],
    ['relay/tasks/await-task.ts maxTaskMs', 'wait for a task', 'request', 'an error'],
    [
      'relay/tasks/task-required-tools.ts cancelMs',
      'cancellation of a task that the client did not want',
      'call',
      'given up'
    ],
    [
      'relay/tasks/session-task-ids.ts maxHosted',
      'tasks that a client hosts for servers',
      'session',
      'the oldest are forgotten'
    ],
    ['relay/tasks/session-tasks.ts maxPerSession', 'tasks that are followed', 'session', 'the oldest are forgotten'],
    ['protocol/translate/tasks.ts maxTaskId chars', 'the id of a task', 'task', 'refused as invalid'],
    ['protocol/translate/tasks.ts shortestPollMs', 'shortest interval of polling', 'task', '-'],
    ['protocol/translate/tasks.ts longestPollMs', 'longest interval of polling', 'task', '-'],
    ['protocol/translate/tasks.ts defaultPollMs', 'interval of polling where the server names none', 'task', '-'],
    ['protocol/translate/tasks.ts longestStatus chars', 'a status message shown as progress', 'message', 'cut'],
    [
      'upstream/rpc/notifications.ts maxTasks',
      'tasks whose progress is passed on',
      'upstream connection',
      'the oldest get none'
    ],
    [
      'upstream/rpc/notifications.ts defaultTtlMs',
      'time for it where the server names none',
      'task',
      'no more progress'
    ],
    ['store/keys.ts tasksKept', 'tasks listed by `tasks/list`', 'caller', 'the oldest are left out'],
    ['store/keys.ts tasksTtlMs', 'life of that list after the last task', 'caller', 'left out']
  ],
  Subscriptions: [
    ['relay/subscriptions/listen-filter.ts maxStreams', 'listen streams', 'caller and process', '429'],
    [
      'relay/subscriptions/listen-filter.ts maxWatched',
      'URIs and task ids of all of them',
      'caller and process',
      '429'
    ],
    ['relay/subscriptions/listen-filter.ts maxBytes', 'memory for them', 'caller and process', '429'],
    ['relay/subscriptions/listen-filter.ts maxEntries', 'URIs or task ids', 'listen stream', 'refused as invalid'],
    ['relay/subscriptions/listen-filter.ts maxLength chars', 'a URI or task id', 'listen stream', 'refused as invalid'],
    [
      'relay/subscriptions/listen-queue.ts changedEveryMs',
      'interval of messages about one list',
      'listen stream',
      'one message for all'
    ],
    ['relay/subscriptions/listen-queue.ts maxQueued', 'updates before the acknowledgment', 'listen stream', 'dropped'],
    ['relay/subscriptions/listen-queue.ts maxQueuedLength chars', 'size of these', 'listen stream', 'dropped'],
    ['relay/subscriptions/listen-upstream.ts maxMeta chars', '`_meta` of an update', 'message', 'left out'],
    ['relay/subscriptions/subscription-index.ts maxPerSubscriber', 'subscribed URIs', 'session', 'refused'],
    ['relay/subscriptions/subscription-index.ts maxPerPerson', 'the same', 'caller and process', 'refused'],
    ['relay/subscriptions/subscription-index.ts maxPerTenant', 'the same', 'tenant and process', 'refused'],
    ['relay/methods/legacy.ts maxUriLength chars', 'a subscribed URI', 'request', 'refused'],
    [
      'upstream/modern/listen-streams.ts maxSubscriptions',
      'subscriptions at a modern server',
      'upstream connection',
      'refused'
    ],
    [
      'relay/subscriptions/resubscription.ts requestMs',
      'wait for `resources/unsubscribe`, and for `resources/subscribe` after a break',
      'request to an upstream',
      'tried again'
    ],
    [
      'relay/subscriptions/resubscription.ts retryDelay',
      'pause before subscriptions are made again',
      'upstream connection',
      'made again'
    ],
    [
      'relay/subscriptions/subscription-index.ts maxBackgroundRequests',
      'requests about subscriptions that no call waits for, at once',
      'upstream connection',
      'wait'
    ],
    [
      'relay/subscriptions/listen-upstream.ts readTaskMs',
      'wait for the state of tasks after a break',
      'request to an upstream',
      'tried again'
    ]
  ],
  Lists: [
    [
      'upstream/listing/listing.ts maxItems',
      'tools, prompts, resources or templates',
      'list of an upstream',
      'the rest is left out'
    ],
    ['upstream/listing/listing.ts maxEntryNotes', 'log lines about faulty entries', 'listing', 'not logged'],
    ['upstream/rpc/link.ts maxCapabilityLength chars', 'one capability of a server', 'upstream', 'left out'],
    ['upstream/rpc/link.ts maxCapabilities', 'capabilities of a server', 'upstream', 'the rest is left out'],
    ['upstream/rpc/link.ts maxCapabilityBytes', 'all of them in memory', 'upstream', 'what is beyond is left out'],
    ['upstream/rpc/link.ts maxInstructionsLength chars', 'instructions of a server', 'upstream', 'cut'],
    ['upstream/rpc/link.ts maxServerInfoLength chars', 'name, version or title of a server', 'upstream', 'cut'],
    [
      'upstream/http/target.ts maxMadeHeaders bytes',
      'headers that repeat the name and the arguments of a request of 2026-07-28',
      'request',
      'refused as invalid; nothing is sent'
    ],
    ['upstream/rpc/decode-json.ts maxPages', 'pages', 'list of an upstream', 'the rest is left out'],
    ['upstream/rpc/decode-json.ts maxCursorLength chars', 'a cursor', 'list of an upstream', 'the rest is left out'],
    ['upstream/rpc/decode-json.ts maxListLength chars', 'text', 'list of an upstream', 'the rest is left out'],
    ['protocol/naming.ts maxNameLength chars', 'a public name', 'tool or prompt', 'shortened, with a hash at its end'],
    ['protocol/methods.ts maxInstructions chars', 'merged instructions', 'endpoint', 'cut'],
    [
      'protocol/translate/revision-shape.ts maxValues',
      'values of an argument that are completed for older revisions',
      'answer',
      'left out'
    ],
    [
      'protocol/translate/param-headers.ts maxAnnotations',
      '`x-mcp-header` annotations',
      'tool',
      'the tool is left out'
    ],
    [
      'protocol/translate/param-headers.ts maxNameLength chars',
      'a header name of `x-mcp-header`',
      'tool',
      'the tool is left out'
    ],
    ['protocol/translate/param-headers.ts maxPathLength chars', 'the path to a value', 'tool', 'the tool is left out'],
    [
      'protocol/translate/param-headers.ts maxSchemaDepth',
      'levels of an input schema that are searched',
      'tool',
      'not searched'
    ],
    [
      'upstream/modern/param-header-cache.ts maxLength chars',
      'remembered header names',
      'upstream connection',
      'the tools are left out'
    ],
    ['relay/catalog/freshness.ts maxTtlMs', '`ttlMs` of a list', 'answer', 'lowered to this'],
    [
      'relay/catalog/freshness.ts watchedMs',
      'age of a list whose changes are reported',
      'list',
      'read again when used'
    ],
    ['relay/catalog/freshness.ts readIntervalMs', 'interval of readings of a listing', 'upstream', 'waits'],
    [
      'relay/catalog/freshness.ts entriesPerInterval',
      'entries; with more, it takes longer',
      'interval of these',
      'waits'
    ],
    ['relay/catalog/freshness.ts readBurst', 'further readings at once', 'upstream', 'waits'],
    [
      'relay/catalog/own-lists.ts readRate',
      'readings of lists that sessions and conversations have to themselves (per second; at once)',
      'upstream',
      'wait their turn'
    ],
    ['time/pacer.ts maxPacers', 'upstreams for which these are counted', 'process', 'the least recent is forgotten'],
    [
      'relay/catalog/freshness.ts reportEveryMs',
      'interval of reported changes',
      "a caller's connection",
      'told together'
    ],
    [
      'upstream/modern/param-header-cache.ts everyMs',
      'interval of readings after a refused header',
      'upstream connection',
      'not read'
    ],
    ['relay/catalog/last-listing.ts failuresUntilHidden', 'failures in a row', 'upstream', 'left out of the lists'],
    [
      'relay/catalog/listing-watcher.ts retryWhileUsedMs',
      'time for which a listing stays watched after its last use',
      'upstream',
      'the connection is closed'
    ],
    [
      'relay/catalog/last-listing.ts minWriteIntervalMs',
      'interval at which a listing is stored',
      'upstream',
      'stored later'
    ],
    [
      'relay/catalog/listing-watcher.ts releaseAfterMs',
      'time for a server to register tools after its handshake',
      'view',
      'taken as complete'
    ],
    [
      'relay/catalog/freshness.ts firstMs maxMs',
      'interval at which a view that shows nothing of its own is read again',
      'view',
      'read again'
    ],
    ['store/keys.ts listingTtlMs', 'life of a stored listing', 'upstream', 'forgotten'],
    ['relay/catalog/views.ts maxPerUpstream', 'views', 'upstream', 'shown what is shown without capabilities'],
    ['relay/catalog/views.ts maxPerPerson', 'views', 'person and upstream', 'shown what is shown without capabilities'],
    ['relay/catalog/views.ts maxPerTenant', 'views', 'tenant', 'shown what is shown without capabilities'],
    [
      'relay/catalog/views.ts maxPerPersonInTenant',
      'views of all upstreams',
      'person',
      'shown what is shown without capabilities'
    ],
    [
      'relay/catalog/views.ts evictableAfterMs',
      'time without use until a view may be replaced',
      'view',
      'replaced, of the person with most views first'
    ],
    [
      'relay/catalog/client-catalogs.ts maxKeyLength chars',
      'capabilities that make a view',
      'caller',
      'shown what is shown without capabilities'
    ],
    [
      'relay/catalog/cache/bounded-listings.ts maxEntries',
      'entries of all lists of its upstreams, offered or not',
      'endpoint',
      'the rest of the longest lists is left out'
    ],
    ['relay/catalog/cache/catalog-cache.ts maxViewsPerEndpoint', 'cached catalogs of views', 'endpoint', 'built again'],
    [
      'relay/legacy-relay.ts maxViewWaitMs',
      'wait of `initialize` for a view',
      'session',
      'the view follows by `list_changed`'
    ],
    [
      'relay/catalog/listing-watcher.ts recheckWhileUsedMs',
      'time since the last use in which a view is read again',
      'view',
      'read with the next use'
    ],
    ['relay/catalog/own-lists.ts readTimeoutMs', "wait for a session's own list", 'list', 'shown as to all'],
    ['upstream/listing/listing.ts maxNameLength chars', 'a name', 'tool or prompt of an upstream', 'left out'],
    ['upstream/listing/listing.ts maxUriLength chars', 'a URI', 'resource of an upstream', 'left out'],
    [
      'protocol/uri-template.ts maxMatchedLength chars',
      'a bare URI that templates are tried on',
      'request',
      'an unknown resource'
    ],
    [
      'relay/catalog/resource-routes.ts maxMatchedTemplates',
      'templates that a bare URI is tried on',
      'upstream',
      'no bare URI matches the rest'
    ],
    [
      'relay/catalog/resource-routes.ts maxParsedTemplates',
      'templates that are looked at for these',
      'upstream',
      'no bare URI matches the rest'
    ],
    [
      'relay/catalog/resource-routes.ts maxMatchedInEndpoint',
      'templates that a bare URI is tried on, of all upstreams together; at least one of each',
      'endpoint',
      'no bare URI matches the rest of those that list most'
    ],
    [
      'relay/catalog/cache/catalog-reports.ts maxLines',
      'lines of the log about names that two upstreams claim, or that are changed',
      'endpoint',
      'not logged until its configuration changes'
    ],
    ['protocol/uri-template.ts maxExpressions', 'expressions of a template', 'template', 'no bare URI matches it']
  ],
  'Calls at upstreams': [
    [
      'relay/methods/shared.ts maxOmitBytes',
      'a result of which parts are left out, its values counted',
      'call',
      '`upstream_protocol`'
    ],
    ['relay/connections/log-level.ts setLevelMs', 'wait for a new log level', 'legacy connection', 'filtered here'],
    [
      'relay/connections/call-slots.ts maxCallSlots',
      'calls side by side over stdio or HTTP+SSE',
      'caller and upstream',
      'wait, or a parked call is given up'
    ],
    [
      'relay/connections/call-slots.ts maxQueuedCalls',
      'calls that wait for one of these',
      'caller and upstream',
      '`too_many`'
    ],
    [
      'relay/connections/call-slots.ts abandonedMs',
      'wait for a cancelled call before its connection is used again',
      'connection',
      'closed at once where another call needs its place'
    ],
    [
      'upstream/rpc/rpc-client.ts maxAbandoned',
      'cancelled calls whose answers are waited for',
      'upstream connection',
      'the oldest are forgotten'
    ],
    [
      'upstream/modern/modern-requests.ts echoMs',
      'time for which messages of a cancelled call are ignored',
      'call',
      'a protocol fault'
    ],
    ['upstream/rpc/notifications.ts callLimit', 'progress and log messages (per second; at once)', 'call', 'dropped'],
    [
      'upstream/rpc/notifications.ts maxHeldBytes',
      'the last progress beyond that, which is sent at the end',
      'call',
      'dropped'
    ],
    [
      'upstream/rpc/notifications.ts connectionLimit',
      'other notifications (per second; at once)',
      'upstream connection',
      'dropped'
    ],
    [
      'upstream/rpc/notifications.ts warningLimit',
      'warnings in the log (per second; at once)',
      'upstream connection',
      'counted'
    ],
    ['upstream/rpc/receiver.ts maxNotificationBytes', 'a notification', 'notification of an upstream', 'dropped'],
    ['upstream/rpc/errors.ts maxErrorLength chars', '`message` and `data` of an error of an upstream', 'error', 'cut'],
    [
      'protocol/json.ts maxValues',
      'JSON values; the limits of an object, a number, and of numbers that no double holds, are those for clients',
      'message of an upstream',
      '`upstream_protocol`'
    ],
    [
      'upstream/http/sse-reader.ts maxUnusable',
      'lines that belong to no event, and events that are no messages, beyond ten for each message',
      'event stream of an upstream',
      '`upstream_protocol`; the stream is given up'
    ],
    [
      'upstream/http/sse-reader.ts maxEventLines',
      'lines without an empty one among them',
      'event stream of an upstream',
      '`upstream_protocol`; the stream is given up'
    ],
    [
      'upstream/http/sse-reader.ts maxIdLength chars',
      'the id of an event',
      'event stream of an upstream',
      '`upstream_protocol`; the stream is given up'
    ],
    [
      'upstream/http/http-sse-stream.ts maxEndpointLength chars',
      'the URI of the event `endpoint`',
      'stream of HTTP+SSE',
      '`upstream_protocol`; the stream is given up'
    ],
    ['upstream/rpc/decode-json.ts maxLevels', 'levels of nested JSON', 'message of an upstream', '`upstream_protocol`'],
    [
      'upstream/http/outcome.ts maxRefusalBytes',
      'a refusal that is read',
      'response of an upstream',
      'the rest is not read'
    ],
    [
      'upstream/http/response-reader.ts maxHeadBytes bytes',
      'status line, headers and trailers',
      'response of an upstream',
      '`upstream_protocol`; the socket is closed'
    ],
    [
      'upstream/http/response-reader.ts maxChunkLine bytes',
      'the size of a chunk with its extensions',
      'response of an upstream',
      'the answer is lost; the socket is closed'
    ],
    ['upstream/http/post-queue.ts maxPosts', 'notifications and responses under way', 'upstream connection', 'wait'],
    [
      'upstream/http/post-queue.ts maxWaiting',
      'messages that wait for these',
      'upstream connection',
      'the connection ends'
    ],
    [
      'upstream/http/post-queue.ts maxWaitingLength chars',
      'size of these',
      'upstream connection',
      'the connection ends'
    ],
    [
      'upstream/http/sessions/session-replay.ts maxAtOnce',
      'calls sent again at once after a lost session',
      'upstream',
      'wait'
    ],
    [
      'upstream/http/streamable-calls.ts maxResumes',
      'resumptions in a row that bring nothing',
      'call',
      '`upstream_unavailable`'
    ],
    [
      'upstream/http/streamable-calls.ts defaultRetryMs',
      'pause before a resumption without `retry`',
      'call',
      'resumed'
    ],
    [
      'upstream/http/streamable-calls.ts minRetryMs maxRetryMs',
      '`retry` of a server that is respected',
      'call',
      'raised or lowered to this'
    ],
    [
      'upstream/http/sessions/reconnects.ts streamRate',
      'resumptions, whatever they bring (per second; at once)',
      'call, GET stream',
      'wait their turn'
    ],
    [
      'upstream/http/sessions/reconnects.ts upstreamRate',
      'the same of all calls and GET streams (per second; at once)',
      'upstream',
      'wait their turn'
    ],
    [
      'upstream/http/sessions/reconnects.ts restedRate',
      'first resumptions, and those after such a time (per second; at once)',
      'upstream',
      'wait their turn'
    ],
    [
      'upstream/http/sessions/reconnects.ts restMs',
      'time without a resumption after which the next one does not wait for those of others',
      'call, GET stream',
      'waits its turn'
    ],
    ['upstream/http/streamable-calls.ts lingerMs', 'wait for the end of a stream after its answer', 'call', 'closed'],
    [
      'upstream/http/modern-link.ts lingerMs',
      'wait for the end of a stream after its answer, modern',
      'call',
      'closed'
    ],
    ['upstream/http/http-sse-link.ts lingerMs', 'wait for the 202 after the answer over HTTP+SSE', 'call', 'closed']
  ],
  'Connections to upstreams': [
    [
      'upstream/pool/connect-backoff.ts times',
      'pause after failed connections',
      'upstream, or caller and upstream',
      'tried again'
    ],
    [
      'upstream/pool/connect-backoff.ts probeMs',
      'interval at which calls try an upstream that is away',
      'upstream',
      '`upstream_unavailable`'
    ],
    [
      'upstream/pool/attempts.ts probeWaitMs',
      "wait of a call for another one's attempt to reach an upstream that is away",
      'call',
      '`upstream_unavailable`'
    ],
    [
      'upstream/pool/stderr-tails.ts maxTailLines',
      'lines of standard error that are kept',
      'upstream',
      'the oldest goes'
    ],
    ['upstream/pool/stderr-tails.ts maxTailBytes', 'the same, in memory', 'upstream', 'the oldest goes'],
    [
      'upstream/pool/connect-backoff.ts provenMs',
      'life after which a connection counts as good',
      'connection',
      'the pause begins anew'
    ],
    [
      'upstream/pool/connect-backoff.ts memoryMs',
      'time for which a failure is remembered',
      'upstream, or caller and upstream',
      'forgotten'
    ],
    ['upstream/pool/pool.ts longestSweepMs', 'interval at which idle connections are looked for', 'process', 'closed'],
    ['upstream/pool/pool.ts closeMs', 'time to close', 'connection', 'destroyed'],
    [
      'upstream/pool/pooled-connection.ts openingMs',
      'wait for the handshake of a connection that is left to the next process',
      'connection',
      'given up'
    ],
    [
      'upstream/pool/pooled-connection.ts givenOutMs',
      'time for which a connection in a session of another process, whose loan is over, waits for a call that got it',
      'connection',
      'closed'
    ],
    [
      'upstream/connect/select-era.ts legacyLifetimeMs',
      'time for which a server counts as legacy',
      'upstream',
      'asked again'
    ],
    [
      'upstream/connect/select-era.ts maxSilenceMs',
      'wait for `server/discover` over stdio',
      'upstream',
      'taken for legacy'
    ],
    [
      'upstream/connect/select-transport.ts lifetimeMs',
      'time for which a server counts as HTTP+SSE',
      'upstream',
      'asked again'
    ],
    ['upstream/connect/select-transport.ts maxEntries', 'remembered findings', 'process', 'the oldest are forgotten'],
    [
      'upstream/http/socket-pool.ts usualSockets',
      'requests at once over HTTP that are no calls (`maxCalls` counts these), each with a socket of its own',
      'upstream',
      '`too_many`; streams are tried again'
    ],
    [
      'limits/descriptors.ts partOfTenant',
      'the part of the files that the process may have open (ulimit -n) for sockets to all upstreams together',
      'tenant',
      'the same'
    ],
    [
      'upstream/http/socket-pool.ts share',
      'the part of these, and of `maxCalls`, that one person may have; always one',
      'upstream',
      'the same'
    ],
    [
      'upstream/http/socket-pool.ts loggedEveryMs',
      'from one log line that all of these are in use to the next',
      'upstream',
      'not logged'
    ],
    [
      'upstream/pool/bulkhead.ts loggedEveryMs',
      'from one log line that an upstream has all its `maxCalls` to the next',
      'upstream',
      'not logged'
    ],
    [
      'upstream/http/socket-pool.ts keepAliveMs keepAliveMarginMs',
      'life of an idle socket; margin below what the server names',
      'socket',
      'closed'
    ],
    [
      'upstream/http/get-stream.ts firstMs maxMs',
      'pause before the GET stream is opened again',
      'upstream connection',
      'opened again'
    ],
    [
      'upstream/http/get-stream.ts minDelayMs maxRetryMs',
      '`retry` of a server that is respected',
      'upstream connection',
      'raised or lowered to this'
    ],
    [
      'upstream/modern/listen-streams.ts firstDelayMs maxDelayMs',
      'pause before a listen stream of the gateway is opened again',
      'upstream connection',
      'opened again'
    ],
    [
      'upstream/modern/listen-streams.ts provenMs',
      'life after which that stream counts as good',
      'stream',
      'the pause begins anew'
    ],
    [
      'relay/subscriptions/listen-upstream.ts retryDelay',
      'pause before a listen stream of a client is opened again',
      'listen stream',
      'opened again'
    ],
    [
      'relay/subscriptions/listen-upstream.ts provenMs',
      'life after which that stream counts as good',
      'stream',
      'the pause begins anew'
    ],
    [
      'upstream/rpc/restart-delay.ts restartBackoff',
      'pause before a lost session is opened again',
      'upstream connection',
      'opened again'
    ],
    [
      'upstream/http/post-queue.ts askAgainMs',
      'pause before a server that refuses a ping is asked for a kept session once more',
      'upstream connection',
      'a new session is begun'
    ],
    [
      'upstream/connect/continued-link.ts maxTurns',
      'processes that have a kept session one after the other',
      'upstream session',
      'a new session is begun'
    ],
    [
      'upstream/rpc/restart-delay.ts provenMs',
      'life after which a session counts as good',
      'session',
      'the pause begins anew'
    ],
    ['upstream/http/post-queue.ts endMs', 'wait for the answer to DELETE', 'session', 'not waited for']
  ],
  'Login front': [
    [
      'login/records.ts grantMembersKept',
      'tokens of a grant that are revoked with it',
      'grant',
      'the oldest ones end by themselves'
    ],
    ['http/login/login-routes.ts maxBodyBytes bytes', 'a body for the login front', 'request', '400'],
    [
      'login/adapter.ts maxStrangerChars chars',
      'what is kept of a registration, and of an authorization that begins',
      'request',
      'refused'
    ],
    ['login/adapter.ts unusedClientMs', 'life of a registered client without a grant', 'client', 'forgotten'],
    [
      'login/provider.ts clientSeconds',
      'least life of a registered client since it last got a code or token',
      'client',
      'forgotten'
    ],
    ['login/login.ts maxAtOnce', 'requests to the provider at once', 'tenant', 'the others wait'],
    [
      'login/people/identities.ts freshMs',
      'how long what the provider said of a person is good',
      'person',
      'asked again'
    ],
    [
      'login/people/identities.ts askingMs',
      'wait for another process that asks the provider',
      'person',
      'the refresh fails'
    ],
    ['login/sign-in-pages.ts interactionSeconds', 'time for all of an authorization', 'person', 'begun anew'],
    ['login/provider.ts codeSeconds', 'life of an authorization code', 'client', '`invalid_grant`'],
    ['login/provider.ts grantSeconds', 'life of a consent, in use or not', 'client', 'asked for again'],
    ['login/records.ts consentsKept', 'consents', 'person', 'the oldest is taken back'],
    [
      'login/refresh-rate.ts windowMs leastRefreshes busyHosts',
      'window of refreshes; how many, at the least; hosts in use all day whose refreshes fit',
      'person',
      '429'
    ],
    [
      'login/keys.ts marginMs',
      'time for which a key is published after the longest token (24 h)',
      'tenant',
      'forgotten'
    ],
    ['login/keys.ts maxAgeMs', 'age of what a process knows of the keys', 'tenant', 'read again'],
    [
      'login/people/remembered-metadata.ts metadataMs',
      "age of the metadata of a tenant's provider",
      'tenant',
      'asked for again'
    ],
    [
      'login/people/remembered-metadata.ts failedMs',
      'time for which a provider is not asked again for metadata that it did not give',
      'tenant',
      'asked at the next sign-in'
    ],
    [
      'login/redirect-guard.ts allowedMs',
      'time for which an address that somebody allowed is told of errors without a page',
      'client and redirect URI',
      'a page with a link'
    ],
    ['login/interactions.ts maxAddressChars', 'the address of an app, on the page of consent', 'page', 'cut'],
    ['login/strangers/own-paths.ts maxParameters', 'parameters of a query', 'request to a login front', '400'],
    ['login/strangers/registration.ts maxClientName', 'the name of an app, on the pages', 'page', 'cut'],
    ['login/people/identity.ts maxTextBytes', 'name, groups and roles of a person as JSON', 'person', 'refused']
  ],
  'Processes over stdio': [
    [
      'upstream/stdio/child-process.ts graceMs',
      'wait after the end of input, and after TERM',
      'process',
      'TERM, then KILL'
    ],
    [
      'upstream/stdio/supervisor.ts maxEndMs',
      'wait of a start, where a limit is reached, for processes that are ending',
      'start',
      '`too_many`'
    ],
    [
      'upstream/stdio/orphans.ts maxSearches',
      'searches for what a process has left',
      'process',
      'given up, and logged'
    ],
    [
      'upstream/stdio/starts.ts startMs',
      'how long a process counts as starting; one starts at a time for each two processors',
      'process',
      'the next one starts'
    ],
    ['upstream/stdio/sandbox.ts scratchBytes', '/tmp and the home folder of a sandbox, each', 'server', 'ENOSPC'],
    ['upstream/stdio/sandbox.ts probeMs', 'wait for the first sandbox, which is a trial', 'process', 'there is none'],
    ['upstream/stdio/limit-mark.ts probeMs', 'wait for the first mark in a limit, a trial', 'process', 'no such marks'],
    [
      'upstream/stdio/limit-mark.ts maxNames',
      'upstreams named where what they leave can escape',
      'log line',
      'counted'
    ],
    ['upstream/stdio/known-programs.ts maxFiles', 'programs whose digests are remembered', 'process', 'read again'],
    [
      'upstream/stdio/usage-watch.ts lookMs',
      'between two looks at what servers take of memory and processes',
      'process',
      'ended at the next look'
    ],
    ['upstream/stdio/starts.ts maxWaitMs', 'wait for the turn of a start', 'start', '`too_many`'],
    ['upstream/stdio/child-process.ts pipesMs', 'wait for the pipes of a dead process', 'process', 'closed'],
    [
      'upstream/stdio/child-process.ts maxQueued bytes',
      'input that the process does not read',
      'process',
      '`upstream_unavailable`'
    ],
    [
      'upstream/stdio/child-stderr.ts maxLineBytes maxLineLength',
      'a logged line of standard error (bytes read; characters logged)',
      'line',
      'cut'
    ],
    [
      'upstream/stdio/child-stderr.ts linesPerSecond lineBurst',
      'logged lines (per second; at once)',
      'process',
      'counted'
    ],
    [
      'upstream/stdio/child-output.ts strayPerSecond strayBurst',
      'lines of standard output that are no messages (per second; at once)',
      'process',
      'ended'
    ],
    [
      'upstream/stdio/child-output.ts sampleBytes sampleLength',
      'what is logged of such a line (bytes; characters)',
      'line',
      'cut'
    ],
    ['upstream/rpc/mask.ts minLength chars', 'the shortest secret that is masked', 'value', '-']
  ],
  Authentication: [
    ['relay/catalog/visible.ts maxScopeSets', 'sets of scopes whose lists are kept', 'catalog', 'made anew'],
    ['auth/token-cache.ts maxAgeMs', 'time that a good token is remembered', 'token', 'verified again'],
    ['auth/jwks.ts maxAgeMs', 'age of a key set', 'issuer', 'fetched again'],
    ['auth/jwks.ts retryMs', 'interval of attempts to renew keys', 'issuer', 'not fetched'],
    ['auth/jwks.ts maxFetches', 'fetches after which there is none for an unknown kid', 'issuer', 'not fetched'],
    [
      'auth/jwks.ts knownGapMs',
      'time after a fetch until there may be one beyond these, for callers who were let in before',
      'issuer',
      'not fetched'
    ],
    ['auth/jwks.ts maxKnownCallers', 'such callers, the latest', 'issuer', 'the earliest is a stranger'],
    ['auth/jwks.ts lookupMs', 'time in which these are counted, and one for each kid', 'issuer, kid', 'not fetched'],
    ['auth/jwks.ts firstTryMs', 'interval of fetches while there are no keys', 'issuer', 'not fetched'],
    ['auth/jwks.ts usualStaleMs', 'life of known keys while the issuer cannot be reached', 'issuer', '503'],
    ['auth/key-set.ts maxKeys', 'keys', 'key set', 'not taken'],
    [
      'auth/introspection.ts refusedMs',
      'time for which a token that was refused, because of what its issuer says of it, is refused unasked',
      'token',
      'asked again'
    ],
    [
      'auth/introspection.ts pauseMs',
      'time for which nobody is asked after a question without an answer',
      'issuer',
      '503'
    ],
    [
      'auth/introspection.ts strangersPerSecond strangersAtOnce',
      'questions about tokens that were never good',
      'issuer',
      '503'
    ],
    [
      'auth/introspection.ts maxStrangers maxQuestions',
      'questions at once about such tokens, and about all',
      'issuer',
      '503'
    ],
    [
      'limits/stranger-rate.ts strangersShare',
      'part of these questions, and of those at once, or of sign-ins, and of what may be begun at a login front, that one address, or /64 of IPv6, may have',
      'issuer and address; tenant and address, at the page of connections and a login front',
      '503; 429 at a login front'
    ],
    [
      'limits/stranger-rate.ts maxNetworks',
      'addresses, and networks of IPv6 (/64), that are counted',
      'issuer; tenant, at the page of connections',
      'the least recent is forgotten'
    ],
    [
      'auth/introspection.ts maxKnown maxRefused',
      'digests of tokens that were good, and that were not',
      'issuer',
      'the least recent are forgotten'
    ],
    [
      'egress/guarded-names.ts ownerAtOnce ownerWaiting',
      'names that strangers, upstreams or authorization servers gave and that are looked up at once, and that wait for it',
      'tenant and purpose (keys, providers, client documents, vault, admin)',
      'refused'
    ],
    ['egress/guarded-names.ts processAtOnce', 'all of these names that are looked up', 'purpose', 'refused'],
    ['egress/guarded-names.ts systemAtOnce', 'of these, those that the system looks up', 'process', 'the others wait'],
    [
      'egress/guarded-names.ts laterIPv6Ms laterIPv4Ms',
      'wait for addresses of the other family once those of one are there',
      'name',
      'connected to without'
    ],
    ['egress/guarded-names.ts deadlineMs', 'the wait and the lookup', 'name', 'refused'],
    [
      'egress/guarded-names.ts firstAnswerMs questions',
      'time for an answer of a name server, and how often it is asked, each time for twice as long',
      'name',
      'refused'
    ],
    ['auth/dpop.ts proofSeconds', 'age of a proof of DPoP', 'request', '401'],
    ['auth/dpop-nonces.ts nonceSeconds', 'time until a nonce for proofs is replaced', 'tenant', 'good once as long'],
    ['auth/dpop.ts proofsPerSecond proofsAtOnce', 'proofs of DPoP', 'caller', '429'],
    ['auth/dpop.ts maxProofCallers', 'callers whose proofs are counted', 'process', 'the least recent are forgotten'],
    ['auth/claims.ts maxClaimLength chars', 'a subject, a client id or a group', 'token', '401'],
    [
      'policy/access.ts maxPrincipals',
      'remembered results of sorting out rules, by what of callers they look at',
      'endpoint',
      'sorted out anew'
    ],
    ['policy/access.ts maxDecisions', 'remembered decisions of rules', 'tenant', 'all are forgotten, and made anew'],
    ['auth/claims.ts maxNames', 'groups, and as many roles', 'token', '401']
  ],
  'Limits of calls': [
    [
      'policy/counters.ts maxStatesTold',
      'limits in RateLimit and RateLimit-Policy',
      'answer',
      'those with most left are not told'
    ],
    ['store/leased-buckets.ts maxBuckets', 'buckets that are known', 'process', 'the least recent are given back'],
    ['store/refill.ts maxLease', 'calls in hand', 'bucket and process', 'asked for more often'],
    [
      'store/refill.ts holdMs',
      'time without being asked, after which what a process has in hand counts as spent',
      'bucket and process',
      '-'
    ],
    [
      'store/refill.ts sweepMs',
      'time without use, after which it is given back, and after which fewer are fetched ahead',
      'bucket and process',
      '-'
    ],
    ['store/leased-buckets.ts maxGivenBack', 'buckets that are given back at a time', 'process', 'given back later'],
    [
      'store/leased-buckets.ts plenty',
      'how many times what is in hand is left, where it is kept and fetched ahead',
      'bucket and process',
      'given back'
    ],
    ['store/refill.ts shortageMs', 'wait for other processes to give back what they have', 'bucket and process', '429'],
    ['store/refill.ts maxEmptyMs', 'until an empty bucket is looked at again', 'bucket and process', '-'],
    [
      'policy/call-limits.ts rememberedMs hourMs',
      'time for which a full bucket, and an old quota, are kept',
      'bucket',
      'forgotten'
    ]
  ],
  Store: [
    ['store/redis-connection.ts commandMs', 'one command', 'command', '503'],
    ['store/redis-connection.ts silentSocketMs', 'silence with commands under way', 'connection', 'given up'],
    ['store/redis-connection.ts connectMs', 'connecting', 'connection', 'tried again'],
    ['store/redis-connection.ts longestPauseMs', 'pause before connecting again', 'connection', 'tried again'],
    ['store/redis.ts defaultHeartbeatMs', 'interval of the heartbeat', 'process', 'copies are not used'],
    ['store/seal.ts checkMs', 'how often the seal key is compared with the store', 'process', 'another one is taken'],
    ['store/seal.ts retryMs', 'pause before the seal key is asked for again', 'process', 'asked again'],
    [
      'store/health.ts writeCheckMs',
      'interval of write checks by `/health/ready`',
      'process',
      'the last result counts'
    ],
    ['store/health.ts writeCheckBytes', 'what such a check writes', 'check', '-'],
    ['store/sqlite/file.ts busyMs', 'wait for another process to close the file', 'start', 'the start fails'],
    ['store/sqlite/file.ts checkpointPages', 'pages of 4 KiB in the write-ahead log', 'file', 'written into the file'],
    [
      'store/sqlite/turns.ts syncMs',
      'time after a commit until the write-ahead log is given to the disk',
      'file',
      'lost if the machine dies'
    ],
    [
      'store/sqlite/turns.ts checkpointBytes bytes',
      'values longer than a page, after which the same is done in a turn of its own',
      'file',
      'done'
    ],
    [
      'store/sqlite/pieces.ts pieceLength chars',
      'a value that is written and read in one piece',
      'value',
      'in pieces, in turns of the event loop of their own'
    ],
    ['store/sqlite/sweep.ts turnMs', 'time for deleting expired rows at a time', 'process', 'deleted later'],
    ['store/sqlite/sweep.ts turnRows', 'expired rows deleted at a time', 'process', 'deleted later'],
    [
      'store/sqlite/log-reader.ts maxReadings',
      'readings of a log that is trimmed meanwhile',
      'call',
      'writers of the log wait'
    ],
    ['store/sqlite/logs.ts maxHeads', 'logs whose head is in memory', 'process', 'read from the file'],
    ['store/sqlite/logs.ts spare', 'part of its time to live that a log in the file may live longer', 'log', '-'],
    [
      'cli/demo-servers.ts fetchMs',
      'fetching of the demo servers of the quickstart',
      'start of a quickstart',
      'it ends and says what to do'
    ]
  ],
  'The start': [['cli/run.ts probeMs', 'answer of whoever has the port already', 'start', 'named as another program']],
  'Several processes on one port': [
    [
      'cli/workers/primary.ts replaceDelay',
      'time until a worker that has ended is replaced, doubled each time',
      'worker',
      '-'
    ],
    ['workers/worker-end.ts lookMs', 'time between two looks of a worker for the primary', 'worker', '-'],
    ['cli/workers/primary.ts leastWorkerBytes', 'least memory of a worker', 'worker', 'the log says so'],
    [
      'cli/workers/primary.ts endMs',
      'end of a worker that stops, after its last connection was closed',
      'worker',
      'it is killed'
    ],
    ['cli/workers/primary.ts atOnceMs', 'end of a worker after a second signal', 'worker', 'it is killed'],
    ['cli/workers/primary.ts wellMs', 'life of a worker after which that begins anew', 'worker', '-'],
    ['cli/workers/forward-lines.ts maxLineBytes', 'a line of the log of a worker, to a pipe', 'line', 'in pieces'],
    [
      'cli/workers/collect-metrics.ts collectMs',
      'next part of the metrics of one worker, for another',
      'worker',
      'left out'
    ],
    [
      'cli/workers/collect-metrics.ts maxTextBytes bytes',
      'metrics of all other workers, for one answer',
      'worker',
      'those with the most are left out, and the log says so once'
    ],
    ['gateway/worker-metrics.ts collectedMs', 'next part of the metrics of any other worker', 'worker', 'left out'],
    ['cli/run.ts maxWorkers', 'workers', 'gateway', 'refused at the start'],
    [
      'limits/process-memory.ts primaryBytes',
      'part of `limits.memoryBytes` that the primary takes; the rest is divided among the workers',
      'gateway',
      '-'
    ],
    [
      'store/channel/channel-store.ts lookMs maxTicks',
      'time that a call of the embedded store waits, in looks at it and their interval',
      'worker',
      '`unavailable`'
    ],
    [
      'store/channel/channel-store.ts maxBusyTicks',
      'the same in looks, while the primary answers other calls',
      'worker',
      '`unavailable`'
    ],
    [
      'store/channel/channel-store.ts maxUnsentBytes bytes',
      'calls of the embedded store that the primary has not read',
      'worker',
      '`unavailable`'
    ],
    [
      'store/channel/serve-store.ts maxUnreadBytes bytes',
      'answers of the embedded store, and messages of other workers, that were not read',
      'worker',
      'messages are left out, and it is told'
    ]
  ],
  'The log': [
    [
      'observe/lines/standard-error.ts maxUnwrittenBytes',
      'lines that could not be written yet, because the disk is full or nobody reads them',
      'process',
      'the newest are left out'
    ],
    ['cli/run.ts unreadLogMs', 'wait for such lines at the end', 'process', 'lost']
  ]
}

/** Numbers that bound nothing which a user would notice: formats, sizes of samples, intervals of sweeping. */
const exceptions = `
upstream/pool/stderr-tails.ts entryBytes
admin/configuration/stopping/known-targets.ts usageDays
admin/configuration/stopping/known-targets.ts shortestEnd
admin/callers/callers.ts dayMs
admin/live/processes.ts digestChars
login/login-events.ts maxEventChars
admin/live/connections.ts maxNameChars
cli/client/tail.ts maxSeen
control/document/judge-in-worker.ts shortChars
limits/open-table.ts leastBuckets
session/random-bytes.ts blockBytes
store/sqlite/turns.ts lazyMs
store/sqlite/turns.ts pageBytes
store/sqlite/turns.ts commitsPerSync
observe/metrics/known-series.ts maxTools
observe/metrics/runtime.ts delayResolution
observe/call-text.ts loggedSessionChars
upstream/stdio/warm-children.ts fillAfterMs
upstream/stdio/supervisor.ts perWarm
observe/log.ts writeEveryMs
observe/lines/line-bytes.ts firstBytes
observe/lines/line-bytes.ts maxKeptBytes
observe/lines/line-bytes.ts maxBytesOfUnit
observe/log.ts callLineChars
observe/counted-later.ts countEveryMs
observe/pseudonyms.ts pseudonymChars
vault/sealed-values.ts maxTries
cli/crash-files.ts timeoutMs
login/sign-in-pages.ts interactionMs
http/account-pages/page-sign-in.ts maxQuery
login/people/sign-in.ts maxReasonChars
login/people/identities.ts pollMs
login/adapter.ts atOnceMs
login/strangers/own-paths.ts minuteMs
login/strangers/own-paths.ts hourMs
cli/try-out.ts startMs
cli/admin/admin-client.ts timeoutMs
egress/fetch.ts operatorConnectMs
cli/client/mcp-client.ts maxShownChars
observe/traces/trace-context.ts maxTracestateChars
observe/traces/traces.ts sendAfterMs
observe/otlp/log-export.ts sendAfterMs
observe/otlp/log-export.ts linesInPart
limits/idle-memory.ts checkMs
limits/idle-memory.ts maxIdleUse
limits/idle-memory.ts idleChecks
limits/idle-memory.ts idleChecksAtStart
limits/idle-memory.ts checksOfStart
limits/idle-memory.ts leastYoungBytes
limits/idle-memory.ts mostHeapBytes
observe/otlp/log-export.ts maxPartBytes
observe/lines/standard-error.ts retryMs
upstream/stdio/known-programs.ts settledMs
observe/otlp/log-export.ts firstRetryMs
observe/otlp/log-export.ts maxRetryMs
hosts/doctor/exchange.ts maxBodyChars
hosts/doctor/endpoint-hops.ts largeMessageBytes
session/session-index.ts readAtOnce
session/session-index.ts membersAtOnce
control/version-records.ts readAtOnce
control/idempotency.ts underWayMs
admin/configuration/planned/caller-classes.ts looksAtTool
admin/configuration/planned/caller-classes.ts looksPerChar
admin/live/sessions.ts charsPerRecord
cli/api-key.ts dayMs
cli/store/verify.ts dayMs
store/keys.ts tombstoneTtlMs
session/session-index.ts additionsPerSweep
session/session-index.ts handleLength
session/session-index.ts timeLength
cli/try-out.ts maxNames
relay/methods/report.ts charactersPerToken
relay/catalog/cache/catalog-reports.ts maxReported
http/sockets.ts descriptorsPerConnection
http/sockets.ts perNewcomer
http/server.ts maxTurnsToClose
http/rates/request-rates.ts maxKept
http/rates/request-rates.ts warnMs
observe/lines/stranger-lines.ts warnMs
limits/descriptors.ts perProcess
limits/descriptors.ts perStart
limits/descriptors.ts usualDescriptors
http/request-memory.ts smallAnswerBytes
protocol/json-steps.ts maxCountedValues
protocol/json-text.ts levelsWithSources
http/request-memory.ts largeAnswerBytes
limits/limits.ts stepBytes
upstream/rpc/mask.ts stepSize
store/sqlite/logs.ts pageBytes
store/sqlite/logs.ts entryBytes
session/event-copies.ts memoryPart
audit/audit.ts retryMs
audit/audit.ts dayMs
cli/admin/transfer.ts tenantsAtOnce
cli/admin/transfer.ts charsAtOnce
admin/oidc/token-administrators.ts leewaySeconds
admin/live/usage.ts dayMs
admin/clients/compared-catalogs.ts charactersPerToken
admin/series/call-steps.ts stepMs
admin/series/call-steps.ts stepsPerMinute
admin/series/call-steps.ts ratio
admin/series/call-steps.ts classes
admin/live/refused-lately.ts minuteMs
admin/live/refused-lately.ts refusedMinutes
admin/live/problems.ts nearly
admin/live/event-streams.ts lastWordMs
admin/paging.ts maxNameLength
control/same-targets.ts digestChars
admin/paging.ts keptNameLength
admin/live/watch.ts renewMs
admin/live/watch.ts believedMs
admin/live/watch.ts sendMs
audit/audit.ts MiB
audit/segments.ts MiB
audit/segments.ts batchesPerSegment
audit/segments.ts segmentMs
audit/segments.ts listedMs
audit/read.ts longestDelayMs
audit/read.ts recordsPerTurn
audit/read.ts clockDifferenceMs
audit/writes.ts collectMs
audit/writes.ts batchChars
audit/writes.ts firstRetryMs
audit/writes.ts maxRetryMs
session/replay.ts sliceChars
audit/syslog.ts severity
audit/otlp.ts severityNumber
policy/counters.ts daySeconds
store/refill.ts awayLogMs
protocol/json-text.ts manyMembers
relay/methods/list-pages.ts smallPageBytes
protocol/json-steps.ts maxEscapeLength
protocol/json.ts nearLength
protocol/json-writer.ts partLength
observe/metrics/metrics-text.ts partLength
protocol/json-text.ts longTextLength
upstream/rpc/transport.ts longRequestLength
protocol/json.ts shortLength
limits/free-buffer.ts smallBytes
protocol/naming.ts hashLength
relay/subscriptions/listen-streams.ts maxUseIntervalMs
session/session-epochs.ts maxEnds
store/keys.ts bridgedTaskCountTtlMs
store/keys.ts foreverMs
store/keys.ts healthTtlMs
store/seal.ts nonceBytes
store/seal.ts proofBytes
store/seal.ts proofChars
store/seal.ts proofsInBlock
store/seal.ts tagBytes
store/sqlite/file.ts layout
store/sqlite/file.ts sqliteBusy
store/sqlite/file.ts sqliteNotADatabase
time/thread.ts idleMs
time/clock.ts waitSteps
time/turns.ts smallSize
egress/sockets.ts probeMs
upstream/http/pooled-socket.ts readBytes
http/one-by-one.ts maxReadBytes
workers/channel.ts messageBytes
observe/metrics/merged-text.ts linesPerTurn
upstream/http/response-reader.ts headPart
upstream/http/response-reader.ts stepPieces
upstream/http/sse-reader.ts feedLength
upstream/http/sse-reader.ts lineSlack
upstream/http/sse-reader.ts sampleLength
upstream/http/sse-reader.ts unusablePerMessage
upstream/modern/param-header-cache.ts overhead
upstream/rpc/decode-json.ts mergeAt
upstream/rpc/server-requests.ts MiB
upstream/stdio/child-output.ts keptBytes
session/bus/bus-gaps.ts retryMs
session/bus/wire/bus-reading.ts whoseChars
session/bus/bus-gaps.ts askAgainMs
http/calls-in-flight.ts lookMs
http/request-turns.ts refusalCost
http/request-turns.ts loggedMs
upstream/stdio/supervisor.ts defaultMemoryPart
upstream/stdio/process-usage.ts looks
cli/serve.ts retryMs
upstream/stdio/orphans.ts crowdedPauseMs
upstream/stdio/orphans.ts markBytes
upstream/stdio/orphans.ts searchPauseMs
upstream/stdio/starts.ts processorsPerStart
upstream/stdio/process-limits.ts perKept
upstream/stdio/process-limits.ts perListing
upstream/stdio/child-output.ts linesPerStep
`
  .trim()
  .split('\n')

const src = join(import.meta.dirname, '..', 'src')

interface Constant {
  /** Path below src, a space, name. */
  readonly key: string
  /** One number, or those of an object with their names. */
  readonly values: ReadonlyArray<readonly [name: string, value: number]>
}

/**
 * The numeric constants at the top level of a file: products of numbers and of earlier constants, and objects of these.
 */
function constantsOf(file: string): Constant[] {
  const known = new Map<string, number>()
  const valueOf = (expression: string): number =>
    expression
      .split('*')
      .map(
        (factor) =>
          known.get(factor.trim()) ?? (/^\s*[\d_.]+\s*$/.test(factor) ? Number(factor.replaceAll('_', '')) : NaN)
      )
      .reduce((product, factor) => product * factor, 1)
  const text = readFileSync(join(src, file), 'utf8')
  const plain = [
    ...text.matchAll(/^(?:export )?const (\w+)(?:: [^=]+)? = (\{[^{}]*\}|[^\n]+?)(?: \/\/.*)?$/gm)
  ].flatMap(([, name = '', body = '']) => {
    const members = body.startsWith('{') ? [...body.matchAll(/(\w+): ([^,{}]+)/g)] : [['', '', body]]
    const values = members.map(([, member = '', expression = '']) => [member, valueOf(expression)] as const)
    if (values.length === 0 || values.some(([, value]) => Number.isNaN(value))) return []
    if (!body.startsWith('{')) known.set(name, values[0]?.[1] ?? NaN)
    return [{ key: `${file} ${name}`, values }]
  })
  // Of an object that holds other things as well: its numbers as `name.member`, which need not be named here.
  const nested = [...text.matchAll(/^(?:export )?const (\w+) = \{\n([\s\S]*?)\n\}/gm)].flatMap(
    ([, name = '', body = '']) =>
      [...body.matchAll(/(\w+): ([\d_]+)/g)].map(([, member = '', value = '']) => ({
        key: `${file} ${name}.${member}`,
        values: [['', valueOf(value)] as const]
      }))
  )
  return [...plain, ...nested]
}

const shownMs = (ms: number): string =>
  [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's']
  ].flatMap(([size, unit]) =>
    ms >= Number(size) && ms % Number(size) === 0 ? [`${ms / Number(size)} ${unit}`] : []
  )[0] ?? `${ms} ms`

function shown(value: number, name: string, unit: string | undefined): string {
  if (name.endsWith('Ms')) return shownMs(value)
  const kind = unit ?? (name.endsWith('Bytes') ? 'bytes' : undefined)
  if (kind === undefined) return value.toLocaleString('en')
  const [size, prefix] = value % 1_048_576 === 0 ? [1_048_576, 'Mi'] : value % 1_024 === 0 ? [1_024, 'Ki'] : [1, '']
  const suffix =
    kind === 'bytes' ? (prefix === '' ? ' bytes' : ` ${prefix}B`) : ` ${prefix === '' ? '' : `${prefix} `}characters`
  return `${(value / size).toLocaleString('en')}${suffix}`
}

/** @throws {Error} that names the rows and the constants of src that do not fit each other */
export function limitsMarkdown(): string {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('config')
  )
  const constants = new Map(files.flatMap(constantsOf).map((constant) => [constant.key, constant]))
  const unused = new Set([...constants.keys()].filter((key) => !key.includes('.', key.indexOf(' '))))
  const problems: string[] = []
  const valuesOf = (source: string): string => {
    const [path = '', ...names] = source.split(' ')
    const unit = names.find((name) => name === 'bytes' || name === 'chars')
    return names
      .filter((name) => name !== unit)
      .flatMap((name) => {
        const key = [...constants.keys()].find((key) => key === `${path} ${name}`)
        if (key === undefined) problems.push(`no constant ${name} in src/${path}`)
        else unused.delete(key)
        return (constants.get(key ?? '')?.values ?? []).map(
          ([member, value]) =>
            `${member === '' ? '' : `${member} `}${shown(value, member === '' || !member.endsWith('Ms') ? name : member, unit)}`
        )
      })
      .join(', ')
  }
  const tables = Object.entries(sections).map(
    ([title, rows]) =>
      `## ${title}\n\n| what | number | of each | beyond it |\n|---|---|---|---|\n${rows.map(([source, what, per, beyond]) => `| ${what} | ${valuesOf(source)} | ${per} | ${beyond} |`).join('\n')}\n`
  )
  for (const key of exceptions) if (!unused.delete(key)) problems.push(`no such exception: ${key}`)
  problems.push(...[...unused].map((key) => `neither a row nor an exception: ${key}`))
  if (problems.length > 0) throw new Error(`scripts/limits.ts does not fit src:\n${problems.join('\n')}`)
  return `# Limits\n\n*Written by \`npm run docs\` from the constants of src (scripts/limits.ts); do not edit.*\n\nWhat can be configured, under \`limits\` and with each upstream, is in [config.md](config.md). These numbers are fixed.\n\n${tables.join('\n')}`
}
