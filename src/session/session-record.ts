// A session as it stands in the store, judged before it is believed: whoever else can write to the store must not make
// the gateway fail, or work with what no client ever sent.

import {
  type ClientCapabilities,
  type EndpointName,
  type Implementation,
  isLegacyRevision,
  isObject,
  type Revision,
  type TenantId
} from '../protocol/messages.ts'
import { isLogLevel, type LogLevel } from '../protocol/seams.ts'
import { sessionKeys } from '../store/keys.ts'

/** The caller who opened a session. No part of the token: a refreshed token keeps its session. */
export interface Owner {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
}

export interface SessionRecord {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /** The epoch of the tenant: a session ends with it, see session-epochs.ts. */
  readonly epoch: number
  /** The slot of the session in the limit of its owner. */
  readonly seat: number
  /** The slot of the session in the limit of its tenant, where that had one. */
  readonly tenantSeat?: number
  readonly revision: Revision
  readonly clientInfo: Implementation | undefined
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
  /** The process where its child processes, subscriptions and tasks are (http/legacy/session-homes.ts). */
  readonly home: string
  /** The process that opened it, where that keeps its sessions at servers (elsewhere/session-keepers.ts). */
  readonly firstHome?: string
  /** Epoch ms. */
  readonly openedAt: number
  readonly touchedAt: number
}

export type NegotiatedClient = Pick<SessionRecord, 'revision' | 'clientInfo' | 'capabilities'>

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.tenant === b.tenant && a.issuer === b.issuer && a.subject === b.subject && a.clientId === b.clientId

/** @returns undefined for what is no whole record: the client opens a new session */
export function decodeSessionRecord(text: string): SessionRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined // The caller logs it.
  }
  if (!isObject(value) || !isObject(value['owner'])) return undefined
  const { owner, endpoint, epoch, seat, tenantSeat = 0, revision, clientInfo, capabilities, logLevel } = value
  const { openedAt, touchedAt, home, firstHome } = value
  const texts = [owner['tenant'], owner['issuer'], owner['subject'], owner['clientId'], endpoint]
  const whole =
    texts.every((each) => typeof each === 'string') &&
    [epoch, seat, tenantSeat].every((each) => Number.isSafeInteger(each) && Number(each) >= 0) &&
    isLegacyRevision(revision) &&
    (clientInfo === undefined ||
      (isObject(clientInfo) && typeof clientInfo['name'] === 'string' && typeof clientInfo['version'] === 'string')) &&
    isObject(capabilities) &&
    (logLevel === undefined || isLogLevel(logLevel)) &&
    [home, firstHome].every((each) => each === undefined || typeof each === 'string') &&
    [openedAt, touchedAt].every(Number.isFinite)
  return whole ? ({ ...value, clientInfo, logLevel, home: home ?? '' } as unknown as SessionRecord) : undefined
}

/**
 * Creates a function that makes keys. It keeps a maker for each endpoint, since callers name only configured ones. No
 * name has a slash.
 */
export function createKeyMaker() {
  const makers = new Map<string, (id: string) => string>()
  // A connection brings one id again and again, and its digest costs more than to compare it.
  const lastKeys = new WeakMap<object, { readonly name: string; readonly id: string; readonly key: string }>()
  /** @param connection that brought the id: its last one is remembered as long as it is open */
  return (tenant: TenantId, endpoint: EndpointName, id: string, connection?: object): string => {
    const name = `${tenant}/${endpoint}`
    const last = connection && lastKeys.get(connection)
    if (last?.id === id && last.name === name) return last.key
    const keyFor = makers.get(name) ?? sessionKeys(tenant, endpoint)
    makers.set(name, keyFor)
    const key = keyFor(id)
    if (connection !== undefined) lastKeys.set(connection, { name, id, key })
    return key
  }
}
