// What the two servers of a load did, as they wrote it down.

import { readFile } from 'node:fs/promises'
import type { CanaryServer } from '../kit/canary-server.ts'
import type { Servers } from './history.ts'

/** @param journal of the server over stdio */
export async function serversOf(web: CanaryServer, journal: string): Promise<Servers> {
  const lines = (await readFile(journal, 'utf8').catch(() => '')).split('\n')
  const executed = Map.groupBy(lines, (line) => line)
  const answers = lines.flatMap((line) => {
    const [, canary, word] = /^answer (\S+) (.*)$/.exec(line) ?? []
    return canary === undefined || word === undefined ? [] : [{ canary, word }]
  })
  const answered = Map.groupBy(answers, ({ canary }) => canary)
  return {
    executed: (canary) => (web.executed.get(canary) ?? 0) + (executed.get(canary)?.length ?? 0),
    answered: (canary) => [
      ...(web.answered.get(canary) ?? []),
      ...(answered.get(canary)?.map(({ word }) => word) ?? [])
    ]
  }
}
