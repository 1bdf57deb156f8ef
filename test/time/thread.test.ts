// A thread that is being ended takes no more work, and keeps nobody waiting.

import t from 'tap'
import { steadyClock } from '../../src/time/clock.ts'
import { createThread } from '../../src/time/thread.ts'

const module = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ id, message }) => {
      if (message === 'for ever') for (;;);
      parentPort.postMessage({ id, message })
    })`)}`
)
const opened = () => createThread<string, string>(module, steadyClock)

t.test('work that comes while the thread ends is done by another one', async (t) => {
  const { run, close } = opened()
  t.equal(await run('first'), 'first')
  const closed = close()
  t.equal(await run('second'), 'second')
  await closed
  t.equal(await run('third'), 'third')
  await close()
})

t.test('work that does not end is given up when the thread is closed', async (t) => {
  const { run, close } = opened()
  const never = run('for ever')
  await Promise.all([t.rejects(never, /ended before its work/), close()])
})
