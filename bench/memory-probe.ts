// Preloaded into the gateway of the memory bench (`node --expose-gc --import`): says what it holds, once it has let go
// of the rest.

export interface Held {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

const collect = (globalThis as { gc?: () => void }).gc
if (collect === undefined || process.send === undefined)
  throw new Error('the probe needs --expose-gc and a channel to its parent')

process.on('message', () => {
  // Twice: what finalizers of the first pass let go goes with the second.
  collect()
  setImmediate(() => {
    collect()
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send?.({ rss, heapUsed, external } satisfies Held)
  })
})
process.channel?.unref()
