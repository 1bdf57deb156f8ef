// Whom a connection counts for among the callers of its tenant: the person, whatever the client, the era and the endpoint.

import { hash } from 'node:crypto'
import type { Principal } from '../auth/principal.ts'

export const shareOf = ({ tenant, issuer, subject }: Pick<Principal, 'tenant' | 'issuer' | 'subject'>): string =>
  hash('sha256', JSON.stringify([tenant, issuer, subject]), 'base64url')
