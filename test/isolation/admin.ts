// The admin API of the processes, for their metrics.

import { hash } from 'node:crypto'

const key = `gha_${hash('sha256', 'isolation', 'base64url')}`

export const adminConfig = {
  listen: { port: 0 },
  keys: [{ name: 'platform', role: 'platform-admin', sha256: hash('sha256', key) }]
}

export const adminHeaders = { authorization: `Bearer ${key}` }
