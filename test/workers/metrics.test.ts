// Metrics of several workers come whole from all of them, in parts, however long they are up to a limit.

import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import t from 'tap'
import { createMetricsCollector } from '../../src/cli/workers/collect-metrics.ts'
import { metricsOfWorkers } from '../../src/gateway/worker-metrics.ts'
import type { Log } from '../../src/observe/log.ts'
import type { Readings } from '../../src/observe/metrics/metrics.ts'
import { openChannel } from '../../src/workers/channel.ts'
import type { PrimaryChannel, ToPrimary, ToWorker, WorkerChannel } from '../../src/workers/messages.ts'
import { quiet } from '../store/kit.ts'
import { until } from '../kit/until.ts'

interface Sent {
  readonly message: { readonly kind: string; readonly text?: string }
  readonly waitingBytes: number
}

/** Two ends that write one message in a turn. */
function ends(sent: Sent[]): { readonly ofPrimary: PrimaryChannel; readonly ofWorker: WorkerChannel } {
  const [here, there] = [new EventEmitter(), new EventEmitter()].map((own) => Object.assign(own, { send }))
  function send(
    this: EventEmitter,
    message: Sent['message'],
    _socket: unknown,
    _options: unknown,
    written: () => void
  ) {
    const [to, from] = this === here ? [there, ofPrimary] : [here, ofWorker]
    sent.push({ message, waitingBytes: from.waitingBytes })
    setImmediate(() => {
      written()
      to?.emit('message', JSON.parse(JSON.stringify(message)))
    })
    return true
  }
  const ofPrimary = openChannel<ToPrimary, ToWorker>(here as never)
  const ofWorker = openChannel<ToWorker, ToPrimary>(there as never)
  return { ofPrimary, ofWorker }
}

const head = '# HELP calls How many.\n# TYPE calls counter\n'
const series = (count: number, width = 80): string =>
  head + Array.from({ length: count }, (_, n) => `calls{tool="${'x'.repeat(width)}ß${n}"} ${n}\n`).join('')

/** @param texts one for each worker */
function gateway(texts: ReadonlyArray<() => Readable | undefined>) {
  const sent: Sent[] = []
  const warned: unknown[] = []
  const log = { ...quiet, warn: (...args: unknown[]) => warned.push(args) } as unknown as Log
  const running = new Map<number, { readonly number: number; readonly channel: PrimaryChannel }>()
  const collector = createMetricsCollector(running, log)
  const told = texts.map((text, at) => {
    const { ofPrimary, ofWorker } = ends(sent)
    running.set(at + 1, { number: at + 1, channel: ofPrimary })
    collector.serve({ number: at + 1, channel: ofPrimary })
    const metrics = { text: async () => text() }
    return metricsOfWorkers({ number: at + 1, channel: ofWorker }, metrics, () => ({}) as Readings)
  })
  const ask = async (worker: number): Promise<Readable | undefined> =>
    await told[worker - 1]?.text({} as Readings, 'prometheus')
  const linesOf = async (worker: number): Promise<number[]> => {
    const answer = await ask(worker)
    const text = answer === undefined ? '' : await readText(answer)
    return texts.map((_, at) => text.split(`calls{worker="${at + 1}",`).length - 1)
  }
  return { sent, warned, ask, linesOf }
}

const textOf = (text: string) => () => Readable.from(text.match(/[^]{1,65536}/g) ?? [], { objectMode: false })

t.test('long ones come whole from both workers, in parts, each asked for when the one before is there', async (t) => {
  const { sent, linesOf } = gateway([textOf(series(20_000)), textOf(series(30_000))])
  t.same(await linesOf(1), [20_000, 30_000])
  t.same(await linesOf(2), [20_000, 30_000])
  t.ok(sent.length > 60, `${sent.length} messages`)
  t.ok(sent.every(({ message: { text = '' } }) => text.length <= 2 * 65_536))
  t.ok(
    sent.every(({ waitingBytes }) => waitingBytes <= 256),
    'the store has all of the channel'
  )
})

t.test('a worker with more than 32 MiB is left out, and the log says so once', async (t) => {
  const long = series(4_200, 8_000)
  t.ok(long.length > 33_554_432)
  let closed = 0
  const { warned, linesOf } = gateway([
    textOf(series(3)),
    () => textOf(long)().once('close', () => (closed += 1)),
    textOf(series(5))
  ])
  t.same(await linesOf(1), [3, 0, 5])
  t.same(await linesOf(3), [3, 0, 5])
  await until('it reads its own no further', () => closed === 2)
  t.equal(warned.length, 1)
})

t.test('of workers with more than 32 MiB together the one that tells the most is left out', async (t) => {
  const long = series(3_500, 8_000)
  t.ok(long.length < 33_554_432, 'alone it is short enough')
  const { warned, linesOf } = gateway([textOf(series(3)), textOf(series(1_500, 8_000)), textOf(long)])
  t.same(await linesOf(1), [3, 1_500, 0])
  t.equal(warned.length, 1)
  t.same(await linesOf(2), [3, 1_500, 3_500], 'its own counts for nobody')
})

t.test('a worker whose text breaks off is left out', async (t) => {
  const broken = () =>
    Readable.from(
      (function* () {
        yield series(3)
        throw new Error('broken')
      })(),
      { objectMode: false }
    )
  t.same(await gateway([textOf(series(3)), broken]).linesOf(1), [3, 0])
  t.same(await gateway([textOf(series(3)), () => undefined]).linesOf(1), [3, 0], 'and one that tells none')
})

t.test('four at a time may read the merged ones', async (t) => {
  const { ask, linesOf } = gateway([textOf(series(3)), textOf(series(3))])
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask(1)))
  t.ok(answers.every((answer) => answer !== undefined))
  t.equal(await ask(1), undefined)
  for (const answer of answers) answer?.destroy()
  await until('there is room', async () => (await linesOf(1))[0] === 3)
})
