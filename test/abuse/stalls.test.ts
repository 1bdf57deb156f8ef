// Attack: one message, or one stream, that keeps the event loop for seconds because of what it consists of. In its
// place, nobody waits: it is refused by what it consists of, or read in steps.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys, stdioServer } from './kit.ts'

/** By the clock, for the neighbour. Generous: the machine may be busy. */
const maxWaitMs = 2_000
/** Of CPU, in one turn of the event loop: docs/reliability.md says why it is not 20. Each of these took seconds. */
const maxTurnMs = 60

/**
 * Runs the attack, again where a turn was long, beside a neighbour for whom nothing may fail or take long. A machine
 * that stops a process for a moment lets a call wait that nothing else has kept waiting: one of three runs shows it.
 */
async function besideNeighbour(t: Test, attack: () => Promise<void>, mostMs = maxTurnMs): Promise<void> {
  let longestMs = Infinity
  for (let runs = 0; runs < 3 && longestMs >= maxWaitMs; runs++) {
    const neighbour = await gateway.neighbour()
    const turnMs = await gateway.longestTurnMs(mostMs, attack)
    const measured = await neighbour.stop()
    t.comment(JSON.stringify({ turnMs, ...measured }))
    t.same(measured.failures, [])
    t.ok(turnMs < mostMs, `the longest turn took ${turnMs} ms of CPU`)
    longestMs = measured.longestMs
  }
  t.ok(longestMs < maxWaitMs, `the longest call of the neighbour took ${longestMs} ms`)
}

// One gateway for all: its start takes longer than most of the attacks.
const upstream = await startUpstream()
t.teardown(upstream.close)
const gateway = await attacked(t, {
  // One process for each test that may end it: the next one would meet what is said of a process that was ended.
  upstreams: { http: { url: upstream.url }, empty: stdioServer(), broken: stdioServer(), idle: stdioServer() },
  watchTurns: true
})
const client = await legacyClient(gateway.url, keys.attacker)

/** A call of a tool that the HTTP server answers so. */
async function answered(answer: (response: ServerResponse, id: string) => void) {
  upstream.override(isCall('echo'), (response, { message }) => answer(response, JSON.stringify(message?.['id'])))
  return await client.request('tools/call', { name: 'http__echo', arguments: {} })
}

/** A call of a tool whose process writes this before it answers. */
const write = (process: string, text: string) =>
  client.request('tools/call', { name: `${process}__raw`, arguments: { text } })

const json = (response: ServerResponse, id: string, x: string): void => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":${x}}}`)
}

/** An object of so many members with different names, which V8 keeps as a hash table. */
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, at) => `"member ${at}":${at}`).join()}}`

const refusedBodies = {
  'numbers beyond what a double holds': `[${'1e999,'.repeat(2_700_000)}1]`,
  'empty objects': `[${'{},'.repeat(5_000_000)}{}]`,
  'members of one object': members(120_000)
}

for (const [what, text] of Object.entries(refusedBodies))
  t.test(`an answer of up to 16 MB of ${what} is refused and stalls nobody`, async (t) => {
    await besideNeighbour(t, async () => {
      const { error } = (await answered((response, id) => json(response, id, text))).json
      t.match(error, { data: { reason: 'upstream_protocol' }, message: /more than \d+ (values|numbers|members)/ })
    })
  })

const largeBodies = {
  'one text': `"${'x'.repeat(15_000_000)}"`,
  'numbers that need care': `[${'12345678901234567890,'.repeat(4_000)}1]`,
  'members with different names': `[${members(10_000)},${members(10_000)}]`
}

for (const [what, text] of Object.entries(largeBodies))
  t.test(`a large answer of ${what} arrives whole and stalls nobody`, async (t) => {
    await besideNeighbour(t, async () => {
      const answer = await answered((response, id) => json(response, id, text))
      t.ok(answer.text.includes(text), 'letter by letter')
    })
  })

t.test('a stream of lines that belong to no event is given up and stalls nobody', async (t) => {
  await besideNeighbour(t, async () => {
    const { json } = await answered((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('z\n'.repeat(4_000_000))
    })
    t.match(json, { error: { data: { reason: 'upstream_protocol' }, message: /belong to no event/ } })
  })
})

t.test('a stream with a few such lines is read', async (t) => {
  const { json } = await answered((response, id) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${'z\n'.repeat(500)}data: {"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":1}}\n\n`)
  })
  t.match(json, { result: { x: 1 } })
})

for (const [name, what, line] of [
  ['empty', 'empty lines', '\n'],
  ['broken', 'lines that are no JSON', '{},\n']
] as const)
  t.test(`a process that writes ${what} without end is ended and stalls nobody`, async (t) => {
    t.match((await write(name, line.repeat(100))).json, { result: {} }, 'a few are left out')
    await besideNeighbour(t, async () => {
      // Tried again, the process was ended by the try before, and the next one is not started at once.
      await until('its process is there', async () => (await write(name, line.repeat(100))).json.result)
      const { error } = (await write(name, line.repeat(300_000))).json
      t.match(error, { data: { reason: 'upstream_protocol' }, message: /floods its standard output/ })
    })
  })

t.test('a process that writes messages without meaning stalls nobody', async (t) => {
  await besideNeighbour(t, async () => {
    t.match((await write('idle', '{}\n'.repeat(300_000))).json, { result: {} })
  })
})

t.test('249,000 numbers beyond what a double holds are refused to a client, and stall nobody', async (t) => {
  const post = (count: number) =>
    send(gateway.url, {
      headers: client.headers,
      body:
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calm__echo",' +
        `"arguments":{"n":[${'1e999,'.repeat(count)}1]}}}`
    })
  t.match((await post(4_000)).json, { result: {} })
  await besideNeighbour(t, async () => {
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([post(248_000), post(248_000)])
      for (const { status, text } of answers) {
        t.equal(status, 400)
        t.match(text, /send them as strings/)
      }
    }
  })
})

t.test(
  'an object of 120,000 members is refused to a client, with what to do, and one of 10,000 is passed on',
  async (t) => {
    const post = (count: number) =>
      send(gateway.url, {
        headers: client.headers,
        body:
          '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calm__echo",' +
          `"arguments":{"n":${members(count)}}}}`
      })
    t.match((await post(10_000)).json, { result: {} })
    const { status, json } = await post(120_000)
    t.equal(status, 400)
    t.match(json.error.message, /holds an object of more than 10000 members. Send long lists as text/)
  }
)
