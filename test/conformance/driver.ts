// What the client half of the suite starts: a gateway in front of the suite's own server (its URL is the last argument), and a client
// that lists the tools behind the gateway and calls each of them once.

import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Answer } from '../kit/client.ts'

interface Tool { readonly name: string, readonly inputSchema: { readonly required?: string[] } }

const closers: Array<() => unknown> = []
const { url } = await gateway({ teardown: (close) => { closers.unshift(close) } }, {
  upstreams: { suite: { type: 'http', url: process.argv.at(-1) } }, endpoints: { default: { upstreams: ['suite'], prefix: '' } }
})
const client = await legacyClient(url(), key)
for (const { name, inputSchema } of resultOf(await client.request('tools/list'))['tools'] as Tool[]) {
  // All that the suite's tools require are numbers.
  resultOf(await client.request('tools/call', { name, arguments: Object.fromEntries((inputSchema.required ?? []).map((argument, n) => [argument, n + 1])) }))
}
for (const close of closers) await close()

function resultOf ({ json, text }: Answer): Record<string, unknown> {
  const { result } = json as { result?: Record<string, unknown> }
  if (result === undefined) throw new Error(text)
  return result
}
