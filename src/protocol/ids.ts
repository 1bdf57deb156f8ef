// Names and ids that must never be mixed up: each is a string to the machine and a type of its own to the compiler.

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type TenantId = Branded<'TenantId'>
export type EndpointName = Branded<'EndpointName'>
export type UpstreamName = Branded<'UpstreamName'>
export type SessionId = Branded<'SessionId'>
export type NodeId = Branded<'NodeId'>
/** A tool or prompt name as the client sees it. */
export type PublicName = Branded<'PublicName'>

export const tenantId = (value: string): TenantId => value as TenantId
export const endpointName = (value: string): EndpointName => value as EndpointName
export const upstreamName = (value: string): UpstreamName => value as UpstreamName
export const sessionId = (value: string): SessionId => value as SessionId
export const nodeId = (value: string): NodeId => value as NodeId
export const publicName = (value: string): PublicName => value as PublicName
