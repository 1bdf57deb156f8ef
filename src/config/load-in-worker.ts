// Reads and checks a configuration in a worker thread: with ten thousand rules that would block calls for too long.
// Only a valid configuration is passed to this thread, which compiles it.

import { isMainThread } from 'node:worker_threads'
import { steadyClock } from '../time/clock.ts'
import { createThread, serveThread } from '../time/thread.ts'
import type { Configuration } from './compile.ts'
import { compiled, judgeConfig, readConfig, type JudgedConfig, type LoadOptions } from './load.ts'
import { ConfigError, type Problem } from './problems.ts'

interface Work {
  readonly path: string
  readonly options: LoadOptions
}

type Answer = { readonly judged: JudgedConfig } | { readonly problems: readonly Problem[] }

/** @throws as `loadConfig`; Error where there is no thread */
export async function loadConfigInWorker(path: string, options: LoadOptions): Promise<Configuration> {
  const thread = createThread<Work, Answer>(new URL(import.meta.url), steadyClock)
  const answer = await thread.run({ path, options: { ...options, env: { ...options.env } } })
  await thread.close()
  if ('problems' in answer) throw new ConfigError(path, answer.problems)
  return compiled(answer.judged, { ...options, path })
}

async function answerOf({ path, options }: Work): Promise<Answer> {
  try {
    return { judged: judgeConfig(await readConfig(path), { ...options, path }) }
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    throw error
  }
}

if (!isMainThread) serveThread(answerOf)
