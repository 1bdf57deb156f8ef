// Which host names are loopback addresses.

import { isIPv4 } from 'node:net'

/** 127.0.0.0/8, ::1 and `localhost`, as bound or as `URL.hostname` writes them. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'))
}
