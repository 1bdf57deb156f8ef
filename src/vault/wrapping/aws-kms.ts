// A wrapping key in AWS KMS: KMS wraps and unwraps the keys of tenants, and the wrapping key never leaves it. The AWS
// SDK is no dependency of the gateway: an operator who configures such a key has to install it.

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
  // The encryption context is authenticated and appears in AWS CloudTrail, so it holds a digest instead of the name.
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

/** Whether KMS has refused (no permission, key disabled), in contrast to a temporary failure such as throttling. */
function hasRefused(error: unknown): boolean {
  const { name = '', $metadata: { httpStatusCode: status = 0 } = {} } = error as {
    readonly name?: string
    readonly $metadata?: { readonly httpStatusCode?: number }
  }
  return status >= 400 && status < 500 && !/throttl|toomany/i.test(name)
}

const fetch = createFetch({ maxBytes, timeoutMs })

/** Sends a request of the SDK through the gateway's own client: no redirects, limited size and time. */
async function passedOn({ method, protocol, hostname, port, path, headers, body }: SdkRequest) {
  const url = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`
  // The HTTP client sets these headers itself.
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
