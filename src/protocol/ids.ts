// Names and ids that must not be mixed up: strings at run time, distinct types to the compiler.

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type TenantId = Branded<'TenantId'>
export type EndpointName = Branded<'EndpointName'>
export type UpstreamName = Branded<'UpstreamName'>
export type SessionId = Branded<'SessionId'>
/** A tool or prompt name as the client sees it. */
export type PublicName = Branded<'PublicName'>

export const tenantId = (value: string): TenantId => value as TenantId
export const endpointName = (value: string): EndpointName => value as EndpointName
export const upstreamName = (value: string): UpstreamName => value as UpstreamName
export const sessionId = (value: string): SessionId => value as SessionId
export const publicName = (value: string): PublicName => value as PublicName
