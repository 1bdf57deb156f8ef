// A configuration is read, and judged, in a thread of its own: of one with ten thousand rules that takes longer than
// calls may be held up while the gateway runs. Only what is valid comes over, and is compiled here.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Configuration } from './compile.ts'
import { compiled, judgeConfig, readConfig, type JudgedConfig, type LoadOptions } from './load.ts'
import { ConfigError, type Problem } from './problems.ts'

interface Work {
  readonly path: string
  readonly options: LoadOptions
}

type Answer = { readonly judged: JudgedConfig } | { readonly problems: readonly Problem[] }

/** @throws ConfigError as `loadConfig` */
export async function loadConfigApart(path: string, options: LoadOptions): Promise<Configuration> {
  const work: Work = { path, options: { ...options, env: { ...options.env } } }
  // Itself, without what this process was told to load first.
  const thread = new Worker(new URL(import.meta.url), { workerData: work, execArgv: [] })
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  thread.once('message', resolve).once('error', reject)
  thread.once('exit', () => reject(new Error('the thread that reads the configuration has ended')))
  const answer = await promise
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

// A port of threads has no origin.
// eslint-disable-next-line unicorn/require-post-message-target-origin
if (!isMainThread) parentPort?.postMessage(await answerOf(workerData as Work))
