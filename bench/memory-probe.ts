// Preloaded into the gateway of the memory bench (`node --expose-gc --import`): says what it holds, once it has let go
// of the rest.

export interface Held {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

interface Collection {
  readonly type: 'major'
  readonly execution: 'sync'
  readonly flavor: 'last-resort'
}

const collect = (globalThis as { gc?: (how: Collection) => void }).gc
if (collect === undefined || process.send === undefined)
  throw new Error('the probe needs --expose-gc and a channel to its parent')

process.on('message', () => {
  // The space of young objects is given back, too: it is one for the process, grows with what was done lately, up to
  // 100 MiB, and has nothing of what is held.
  const how: Collection = { type: 'major', execution: 'sync', flavor: 'last-resort' }
  // Twice: what finalizers of the first pass let go goes with the second.
  collect(how)
  setImmediate(() => {
    collect(how)
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send?.({ rss, heapUsed, external } satisfies Held)
  })
})
process.channel?.unref()
