// Calls of several replicas in one session of a server over HTTP, while that forgets its sessions, refuses requests and
// breaks off, and replicas are killed: none is executed twice, and each is answered as it went.

import t, { type Test } from 'tap'
import { type LegacyClient, send } from '../kit/client.ts'
import { post } from '../kit/server-request.ts'
import { isMethod, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const server = await startUpstream()
t.teardown(server.close)
const upstreams = { up: { type: 'http', url: server.url } }
const rig = await startReplicas(t, { upstreams, endpoints: { default: { upstreams: ['up'], prefix: '' } } }, [
  {},
  {},
  {}
])
const urls = [0, 1, 2].map((node) => rig.at(node))
const { lentTo } = await countMessages(t, rig.store.url)

async function warm(url: string): Promise<void> {
  const client = await sessionAt(url)
  await tool(url, client, 'echo')
  await client.end()
}
for (const url of urls) await warm(url)

interface Told {
  readonly url: string
  readonly word: string
  /** Undefined: the replica was gone. */
  readonly text: string | undefined
}

let words = 0
async function call(url: string, client: LegacyClient): Promise<Told> {
  const word = `word ${++words}.`
  const name = words % 3 === 0 ? 'slow' : 'echo'
  const message = { id: word, method: 'tools/call', params: { name, arguments: { word } } }
  const answer = await post(url, client, message).catch(() => undefined)
  return { url, word, text: answer?.text }
}

function timesExecuted(word: string): number {
  const isIt = ({ params }: Record<string, any>): boolean => params?.arguments?.word === word // eslint-disable-line typescript/no-explicit-any
  return server.server.received.filter(isIt).length
}

/** @param gone a replica that was killed. @returns how many were answered */
function judged(t: Test, told: readonly Told[], gone?: string): number {
  const isLeft = ({ text = '' }: Told): boolean => !/"id"/.test(text)
  t.same(
    told.filter((each) => isLeft(each) && each.url !== gone),
    [],
    'each has an answer at a replica that is there'
  )
  const isAnswered = ({ text = '' }: Told): boolean => /"result"/.test(text) && !/"isError":true/.test(text)
  const isOpen = (each: Told): boolean => isLeft(each) || /"outcome":"unknown"/.test(each.text ?? '')
  const wrong = told.filter((each) => {
    const times = timesExecuted(each.word)
    return isAnswered(each) ? times !== 1 : isOpen(each) ? times > 1 : times !== 0
  })
  t.same(
    wrong.map((each) => ({ ...each, times: timesExecuted(each.word) })),
    []
  )
  return told.filter(isAnswered).length
}

async function lent(home = urls[0] ?? ''): Promise<LegacyClient> {
  const client = await sessionAt(home)
  await tool(home, client, 'echo')
  for (const url of urls) if (url !== home) await lentTo(url, client, 'echo')
  return client
}

/** Calls at these replicas, eight at a time at each, while the work is done. */
async function under(client: LegacyClient, at: readonly string[], work: () => Promise<unknown>): Promise<Told[]> {
  const told: Told[] = []
  const load = { isOver: false }
  const callers = at.flatMap((url) =>
    Array.from({ length: 8 }, async () => {
      for (let last: Told | undefined; !load.isOver && (last === undefined || last.text !== undefined);) {
        last = await call(url, client)
        told.push(last)
      }
    })
  )
  const ticks = setInterval(() => server.server.release(), 10)
  const more = async (count: number): Promise<void> => {
    const before = told.length
    await until('there are more calls', () => told.length > before + count)
  }
  await more(50)
  await work()
  await more(50)
  load.isOver = true
  await Promise.all(callers)
  clearInterval(ticks)
  return told
}

const handshakes = (): number => server.seen.filter(isMethod('initialize')).length

t.test('the server forgets its sessions', async (t) => {
  const client = await lent()
  const told = await under(client, urls, async () => {
    for (let n = 0; n < 3; n++) {
      const before = handshakes()
      server.sessions.clear()
      await until('it is begun anew', () => handshakes() > before)
      await Promise.all(urls.map((url) => tool(url, client, 'echo')))
    }
  })
  const forgottenTwice = told.filter(({ text }) => text?.includes('twice in a row') === true).length
  t.equal(judged(t, told) + forgottenTwice, told.length, 'all were answered')
  await client.end()
})

for (const status of [404, 403, 400, 502])
  t.test(`requests are refused with ${status}, by whatever stands before the server`, async (t) => {
    const client = await lent()
    // All of them are used up here: none is left to the next test.
    let [calls, refused] = [0, 0]
    const times = 3
    server.override(
      (seen) => isMethod('tools/call')(seen) && ++calls % 41 === 0,
      (response) => {
        refused++
        response.writeHead(status).end()
      },
      times
    )
    const told = await under(client, urls, () => until('all are used up', () => refused === times))
    t.ok(judged(t, told) > told.length / 2)
    await client.end()
  })

t.test('connections to the server break off', async (t) => {
  const client = await lent()
  const told = await under(client, urls, async () => {
    for (let n = 0; n < 10; n++) {
      server.cut()
      await Promise.all(urls.map((url) => tool(url, client, 'echo')))
    }
  })
  t.ok(judged(t, told) > told.length / 2)
  await client.end()
})

for (const which of ['home', 'borrower'])
  t.test(`the ${which} of a session is killed`, async (t) => {
    const extra = await rig.start()
    const url = `${extra.url}/t/acme/mcp`
    await warm(url)
    const client = await lent(which === 'home' ? url : urls[0])
    if (which === 'borrower') await lentTo(url, client, 'echo')
    const told = await under(client, [...urls, url], async () => {
      extra.signal('SIGKILL')
      await extra.ended
    })
    t.ok(judged(t, told, url) > told.length / 2)
    t.equal((await send(urls[2] ?? '', { method: 'DELETE', headers: client.headers })).status, 204)
  })

t.test(
  'the home of a session is killed while it begins the session anew: who waits for that is answered',
  async (t) => {
    const extra = await rig.start()
    const url = `${extra.url}/t/acme/mcp`
    await warm(url)
    const client = await lent(url)
    let begins = 0
    server.override(isMethod('initialize'), () => void begins++)
    server.sessions.clear()
    const guests = urls.slice(1)
    const waiting = guests.map((guest) => call(guest, client))
    await until('the home begins it', () => begins > 0)
    extra.signal('SIGKILL')
    await extra.ended
    const told = await Promise.all(waiting)
    t.equal(judged(t, told), 0)
    for (const { text, word } of told) {
      t.match(text, /"reason":"upstream_unavailable"/)
      t.equal(timesExecuted(word), 0)
    }
    for (const guest of guests) t.match(await tool(guest, client, 'echo', { text: 'goes on' }), 'goes on')
    t.equal((await send(guests[0] ?? '', { method: 'DELETE', headers: client.headers })).status, 204)
  }
)
