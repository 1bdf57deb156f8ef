// What an SDK's client hears of a call, seen where messages arrive: it forgets who listens to the progress of a request
// as soon as it has the result, and with it the progress that came in the same piece.

/** What of a client is needed; those of all SDKs have it. */
interface ProgressClient {
  readonly transport?: object | undefined
}

export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

type Receive = (message: { method?: string; params?: unknown; result?: unknown }, ...more: unknown[]) => void

/** Runs calls of the client. @returns their progress and the word `result` for each result, in the order of arrival */
export async function heardDuring(
  client: ProgressClient,
  calls: () => Promise<unknown>
): Promise<Array<Progress | 'result'>> {
  const transport = client.transport as { onmessage?: Receive | undefined } | undefined
  if (transport === undefined) throw new Error('the client is not connected')
  const heard: Array<Progress | 'result'> = []
  const { onmessage } = transport
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport of the SDK is no EventTarget
  transport.onmessage = (message, ...more) => {
    if (message.method === 'notifications/progress') heard.push(message.params as Progress)
    if (message.result !== undefined) heard.push('result')
    onmessage?.(message, ...more)
  }
  try {
    await calls()
    return heard
  } finally {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport of the SDK is no EventTarget
    transport.onmessage = onmessage
  }
}

export const stepsOf = (heard: ReadonlyArray<Progress | 'result'>): unknown[] =>
  heard.map((each) => (each === 'result' ? each : [each.progress, each.total]))
