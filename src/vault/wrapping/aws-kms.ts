// A key in AWS KMS: it wraps the keys of tenants there, and never leaves it. The SDK of AWS is no dependency of the
// gateway: whoever configures such a key installs it beside.

import { createFetch } from '../../egress/fetch.ts'
import type { AwsKmsKey } from '../../config/snapshot.ts'
import { digest } from '../../store/keys.ts'
import { KeyServiceAway, type WrappingKey } from './wrapping-key.ts'

const maxBytes = 64 * 1024
const timeoutMs = 5_000
/** The SDK waits between them, longer each time. */
const maxAttempts = 2

/** A request of the SDK to its HTTP client. */
interface SdkRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string | Uint8Array
}

/**
 * @param key of the configuration: where it says no region, that of the environment counts, and so do its credentials
 * @throws Error where the SDK is not installed
 */
export async function awsKmsKey(id: string, { keyId, region, endpoint }: AwsKmsKey): Promise<WrappingKey> {
  const { KMSClient, EncryptCommand, DecryptCommand } = await import('@aws-sdk/client-kms').catch((cause: unknown) => {
    throw new Error('AWS KMS needs its SDK beside the gateway: npm install @aws-sdk/client-kms', { cause })
  })
  const client = new KMSClient({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts,
    requestHandler: { handle: passedOn }
  })
  // Authenticated, and in AWS's own record of who used the key: no name of anybody is in it.
  const contextOf = (tenant: string) => ({ 'gatehouse-vault': digest(tenant) })
  const header = Buffer.from(JSON.stringify({ alg: 'aws-kms', kid: id })).toString('base64url')
  return {
    id,
    async wrap(key, tenant) {
      const request = { KeyId: keyId, Plaintext: key, EncryptionContext: contextOf(tenant) }
      const { CiphertextBlob } = await client.send(new EncryptCommand(request))
      if (CiphertextBlob === undefined) throw new Error('AWS KMS answered without what it should have wrapped')
      return `${header}.${Buffer.from(CiphertextBlob).toString('base64url')}`
    },
    async unwrap(text, tenant) {
      const blob = Buffer.from(text.split('.')[1] ?? '', 'base64url')
      const request = { KeyId: keyId, CiphertextBlob: blob, EncryptionContext: contextOf(tenant) }
      const { Plaintext } = await client.send(new DecryptCommand(request)).catch((error: unknown) => {
        throw hasRefused(error) ? error : new KeyServiceAway('AWS KMS cannot be asked', { cause: error })
      })
      if (Plaintext === undefined) throw new Error('AWS KMS answered without what it should have opened')
      return Plaintext
    }
  }
}

/** A right that was taken away, or a key that is disabled, is an answer; too many requests at once are none. */
function hasRefused(error: unknown): boolean {
  const { name = '', $metadata: { httpStatusCode: status = 0 } = {} } = error as {
    readonly name?: string
    readonly $metadata?: { readonly httpStatusCode?: number }
  }
  return status >= 400 && status < 500 && !/throttl|toomany/i.test(name)
}

const fetch = createFetch({ maxBytes, timeoutMs })

/** Requests go the way of all others: no redirects, few bytes, little time. The operator says where they go. */
async function passedOn({ method, protocol, hostname, port, path, headers, body }: SdkRequest) {
  const url = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`
  // Whoever sends them counts and names them.
  const { host: _host, 'content-length': _length, ...sent } = headers
  const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : body
  const response = await fetch(url, { method, headers: sent, body: text })
  return {
    response: {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: new Uint8Array(await response.arrayBuffer())
    }
  }
}
