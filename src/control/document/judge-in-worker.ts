// Long documents are judged in a thread of its own: that takes longer than calls may be held up. Short ones are judged
// here, each in a turn of the event loop.

import { isMainThread } from 'node:worker_threads'
import type { Environment } from '../../config/references.ts'
import { steadyClock } from '../../time/clock.ts'
import { createThread, serveThread } from '../../time/thread.ts'
import { nextTurn } from '../../time/turns.ts'
import { judgeDocument, type JudgedDocument, type JudgeWork } from './compile-document.ts'
import { ControlError } from '../control-error.ts'
import { draftOf, type DraftWork } from './draft.ts'

/** The characters that are judged here and not in a thread: so many take a few milliseconds. */
const shortChars = 8_192

type Work = { readonly draft: DraftWork } | { readonly judge: JudgeWork }
type Refused = Pick<ControlError, 'code' | 'message' | 'remedy' | 'problems'>
type Answer =
  | { readonly text: string | undefined }
  | { readonly refused: Refused }
  | { readonly judged: JudgedDocument }

export type WorkerJudge = ReturnType<typeof createWorkerJudge>

/** @param env where `${NAME}` in documents of platform-admins comes from */
export function createWorkerJudge(env: Environment) {
  const thread = createThread<Work, Answer>(new URL(import.meta.url), steadyClock, { ...env })

  async function answerOf(work: Work, chars: number): Promise<Answer> {
    const here = (): Answer => answerTo(work, env)
    // Without a descriptor or memory for a thread a change holds others up, and is not lost.
    const answer = chars > shortChars ? await thread.run(work).catch(here) : here()
    // What follows has a turn of its own: to take a long answer over is work enough for one.
    await nextTurn()
    return answer
  }

  return {
    /** @returns undefined: it is so already. @throws ControlError as `draftOf` */
    async draft(work: DraftWork): Promise<string | undefined> {
      const answer = await answerOf({ draft: work }, work.wanted.length + (work.before?.length ?? 0))
      if ('text' in answer) return answer.text
      if (!('refused' in answer)) throw new Error('a draft was answered with something else')
      const { code, message, remedy, problems } = answer.refused
      throw new ControlError(code, message, remedy, problems)
    },
    async judge(work: JudgeWork): Promise<JudgedDocument> {
      const answer = await answerOf({ judge: work }, work.text.length)
      if ('judged' in answer) return answer.judged
      throw new Error('a document was answered with something else')
    },
    close: thread.close
  }
}

function answerTo(work: Work, env: unknown): Answer {
  if ('judge' in work) return { judged: judgeDocument(work.judge, env as Environment) }
  try {
    return { text: draftOf(work.draft) }
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    const { code, message, remedy, problems } = error
    return { refused: { code, message, remedy, problems } }
  }
}

if (!isMainThread) serveThread(answerTo)
