// A session as it stands in the store, judged before it is believed: whoever else can write to the store must not make
// the gateway fail, or work with what no client ever sent.

import { isLegacyRevision, isObject } from '../protocol/messages.ts'
import { isLogLevel } from '../protocol/seams.ts'
import type { SessionRecord } from './sessions.ts'

/** @returns undefined for what is no whole record: the client opens a new session */
export function decodeSessionRecord(text: string): SessionRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined // The caller logs it.
  }
  if (!isObject(value) || !isObject(value['owner'])) return undefined
  const { owner, endpoint, epoch, seat, revision, clientInfo, capabilities, logLevel, openedAt, touchedAt } = value
  const texts = [owner['tenant'], owner['issuer'], owner['subject'], owner['clientId'], endpoint]
  const whole =
    texts.every((each) => typeof each === 'string') &&
    [epoch, seat].every((each) => Number.isSafeInteger(each) && Number(each) >= 0) &&
    isLegacyRevision(revision) &&
    (clientInfo === undefined ||
      (isObject(clientInfo) && typeof clientInfo['name'] === 'string' && typeof clientInfo['version'] === 'string')) &&
    isObject(capabilities) &&
    (logLevel === undefined || isLogLevel(logLevel)) &&
    [openedAt, touchedAt].every(Number.isFinite)
  return whole ? ({ ...value, clientInfo, logLevel } as unknown as SessionRecord) : undefined
}
