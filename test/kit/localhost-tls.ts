// A certificate for `localhost`, for web servers of tests that the gateway in the same process is to trust.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Teardown } from './listen.ts'

/** Trusted by this process until the test has ended. @returns PEM, as `https.createServer` takes it */
export async function trustedLocalhost(t: Teardown): Promise<{ readonly cert: string; readonly key: string }> {
  const fixture = (name: string): Promise<string> => readFile(join(import.meta.dirname, 'tls', name), 'utf8')
  const [cert, key] = [await fixture('localhost.crt'), await fixture('localhost.key')]
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, cert])
  t.teardown(() => setDefaultCACertificates(trusted))
  return { cert, key }
}
