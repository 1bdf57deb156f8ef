// A connection of the load with what it does again and again.

import { openConnection } from './connection.ts'
import { prepareOperations, type Operation, type Target } from './operations.ts'

/** Sessions outlive a round, sockets do not. */
const known = new Map<string, Promise<Operation[]>>()

export function operationsFor({
  target,
  connections
}: {
  readonly target: Target
  readonly connections: number
}): Promise<Operation[]> {
  const key = JSON.stringify([target, connections])
  let operations = known.get(key)
  if (operations === undefined) known.set(key, (operations = prepareOperations(target, connections)))
  return operations
}

export interface Worker {
  readonly busy: boolean
  /** @param startedAt when it should begin, which may be earlier */
  begin(startedAt: number): void
  end(): void
}

export function workerOf(
  url: URL,
  operation: Operation,
  fail: (error: unknown) => void,
  onEnd: (worker: Worker, startedAt: number) => void
): Worker {
  let began = 0
  let busy = false
  const connection = openConnection(
    url,
    (head, body) => {
      try {
        const next = operation.next(head, body)
        if (next !== undefined) return connection.send(next)
        busy = false
        onEnd(worker, began)
      } catch (error) {
        fail(error)
      }
    },
    fail
  )
  const worker: Worker = {
    get busy() {
      return busy
    },
    begin(startedAt) {
      began = startedAt
      busy = true
      connection.send(operation.begin())
    },
    end: () => connection.end()
  }
  return worker
}
