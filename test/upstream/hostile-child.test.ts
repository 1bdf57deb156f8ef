// Child processes that misbehave: floods of lines that are no messages, secrets in their output, signals that do not
// reach them.

import { ChildProcess } from 'node:child_process'
import t, { type Test } from 'tap'
import { createMask } from '../../src/upstream/stdio/child-environment.ts'
import {
  callOf,
  handshake,
  never,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import type { StdioDefinition } from '../../src/config/snapshot.ts'

const pem = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n'

async function open(t: Test, overrides: Partial<StdioDefinition> = {}) {
  const events = recordingEvents()
  const shop = testConnector()
  const upstream = await shop.connector.connect(stdioDefinition({}, overrides), handshake, events)
  t.teardown(() => upstream.close())
  const call = (tool: string, args: object = {}) => upstream.request(callOf(tool, args), recordingClient(), never)
  return { upstream, events, call, ...shop }
}

t.test(
  'a child that floods its standard output with what is no message is ended, and the log stays small',
  async (t) => {
    for (const text of ['x\n', '1\n', '"text"\n']) {
      const { call, events, supervisor, logged } = await open(t)
      await t.rejects(call('raw', { text: text.repeat(200_000) }), {
        code: 'upstream_protocol',
        message: /standard error/,
        data: { outcome: 'unknown' }
      })
      t.match(events.ended, [{ code: 'upstream_protocol' }], 'its owner is told once')
      await until(() => supervisor.count() === 0, 'no process is left')
      t.equal(events.ended.length, 1)
      t.equal(logged.filter(({ bytes }) => bytes !== undefined).length, 1, 'one line of log for all of them')
      t.ok(supervisor.strayLines.of(stdioDefinition()) > 1_000, 'and their number for those who ask')
    }
  }
)

t.test('a child that prints thousands of debug lines between its messages works', async (t) => {
  const { call, events, logged } = await open(t)
  for (let n = 0; n < 3; n++)
    t.match(await call('raw', { text: 'debug: step\n'.repeat(2_000) }), { content: [{ text: 'written' }] })
  t.same(events.ended, [])
  t.match(
    logged.filter(({ bytes }) => bytes !== undefined),
    [{ bytes: 11, reason: 'is not valid JSON', lines: 1 }]
  )
})

t.test(
  'what a child prints once it has answered, such as arguments and halves of results, is in no line',
  async (t) => {
    const { call, logged } = await open(t)
    await call('raw', { text: '{"jsonrpc":"2.0","id":77,"result":{"content":[{"text":"a-result\ngot an-argument\n' })
    t.match(
      logged.filter(({ bytes }) => bytes !== undefined),
      [{ bytes: Number }]
    )
    t.notMatch(JSON.stringify(logged), /a-result|an-argument/)
  }
)

t.test('words of a sentence, options and addresses are no secrets, whatever stands among them', (t) => {
  const env = {
    PROMPT: 'You are an assistant (for billing questions).',
    NODE_OPTIONS: '--max-old-space-size=4096',
    USER_AGENT: 'Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 AppleWebKit/537.36',
    FILTERS: 'status=open&priority=high',
    NO_PROXY: '10.0.0.0/8,192.168.0.0/16,localhost',
    SETTINGS: '{"theme":"dark","max_tokens":4096}',
    PASSPHRASE: 'correct horse battery-staple',
    MORE: 'Say hello with ghx-9a7e55c0f4 when greeted.',
    DSN_OF: 'Server=db.example;Password=hunter2pw;Timeout=30',
    SHAPE: 'Tr0ub4dor&3'
  }
  const mask = createMask({ args: [], env })
  const words = 'Your assistant started for billing questions. with --max-old-space-size=4096, Mozilla/5.0 (X11; Linux'
  const kept = `${words} x86_64 status=open&priority=high 192.168.0.0/16 "max_tokens":4096 battery-staple greeted.`
  t.equal(mask(kept), kept)
  for (const secret of ['correct horse battery-staple', 'ghx-9a7e55c0f4', 'hunter2pw', 'Tr0ub4dor&3'])
    t.equal(mask(`it is ${secret}, no?`), 'it is ***, no?')
  t.end()
})

t.test('what a child prints of its variables and arguments is masked', async (t) => {
  const secrets = { API_KEY: 'hunter2-hunter2', PEM: pem, STAGE: 'production', ROOT: '/srv/files/of-acme' }
  const base = stdioDefinition()
  const { call, logged } = await open(t, {
    env: secrets,
    args: [...base.args, '--token=open-sesame-1', '--root=/srv/files/of-acme', 'second-argument']
  })
  const text = `key hunter2-hunter2 of open-sesame-1\nno /srv/files/of-acme in production\nsecond-argument\n${pem}`
  await call('stderr', { text, times: 1 })
  await until(() => logged.filter(({ stderr }) => stderr !== undefined).length >= 7, 'standard error is logged')
  const lines = logged.map(({ stderr }) => stderr).filter((line) => line !== undefined)
  const kept = ['no /srv/files/of-acme in production', 'second-argument']
  t.same(lines, ['key *** of ***', ...kept, '***', '***', '***', '***'])
})

t.test('a secret that is cut at the end of a text is masked too, a short value is no secret', (t) => {
  const mask = createMask({ args: ['--verbose=1', 'ok'], env: { KEY: 'abcdefghijklmnop', MODE: 'debug' } })
  t.equal(mask('it is abcdefghijkl'), 'it is ***')
  t.equal(mask('it is abcdefg'), 'it is abcdefg')
  t.equal(mask('debug ok 1'), 'debug ok 1')
  t.equal(mask('abcdefghijklmnop, abcdefghijklmnop'), '***, ***')
  t.end()
})

t.test('arguments are masked where they are secrets by name or form, and what came by reference always', (t) => {
  const args = ['-y', '@acme/files-server@1.2.3', '--api-key', 'open-sesame', '-e', 'DB_PASSWORD=correct horse']
  const mask = createMask({
    args: [...args, 'postgres://ada:pass-of-ada@db/x', 'sk4f1c9a7e55', '--log-level', 'verbose-debug'],
    env: {
      SESSION_DIR: '/var/lib/sessions',
      AUTHOR: 'ada-of-acme',
      DESIGN_SYSTEM: 'material',
      SESSION_ID: 'ada-again'
    },
    argumentSecrets: ['plain word of a file'],
    references: ['word-of-variable']
  })
  const shown = '-y @acme/files-server@1.2.3 --log-level verbose-debug /var/lib/sessions ada-of-acme material'
  t.equal(mask(shown), shown)
  for (const secret of ['open-sesame', 'correct horse', 'pass-of-ada', 'sk4f1c9a7e55', 'ada-again'])
    t.equal(mask(`it is ${secret}.`), 'it is ***.')
  for (const secret of ['plain word of a file', 'word-of-variable']) t.equal(mask(`it is ${secret}.`), 'it is ***.')
  t.end()
})

t.test('what is a token by its form is masked, though no definition knows it; words that begin like one stay', (t) => {
  const mask = createMask({ args: [], env: {} })
  const body = '0123456789abcdefABCDEF'
  const jwt = `eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.${body}`
  for (const token of [`ghp_${body}`, `sk-proj-${body}`, `xoxb-${body}`, 'AKIAIOSFODNN7EXAMPLE', jwt])
    t.equal(mask(`401: token=${token}, retry`), '401: token=***, retry')
  t.equal(mask(`Authorization: Bearer ${body}==`), 'Authorization: Bearer ***')
  const text = 'Bearer token is missing; task-force-of-the-whole-team, ghp_short, eyJust.eyJust.x, AKIA'
  t.equal(mask(text), text)
  t.end()
})

t.test('credentials of HTTP in any case and passwords within URLs are masked, words and addresses stay', (t) => {
  const mask = createMask({ args: [], env: {} })
  for (const [line, shown] of [
    ['authorization: bearer 0123456789abcdef', 'authorization: bearer ***'],
    ['{"Authorization":"BASIC YWRhOnB3"}', '{"Authorization":"BASIC YWRhOnB3"}'.replace('YWRhOnB3', '***')],
    ['Basic YWRhOnB3cHc=, retry', 'Basic ***, retry'],
    ['no postgres://ada:p4@ss@db.example:5432/x', 'no postgres://ada:***@db.example:5432/x'],
    ['no REDIS://:short@db?x=1', 'no REDIS://:***@db?x=1']
  ] as const)
    t.equal(mask(line), shown)
  const text = [
    'basic settings: basic auth is off, bearer token of ada, Bearer is missing',
    'at http://db.example:8080/@acme/x and https://ada@example.com:443/ and c://x'
  ].join('\n')
  t.equal(mask(text), text)
  t.end()
})

t.test('of NAME=VALUE in an argument the value is masked, and names of further secrets are known', (t) => {
  const mask = createMask({
    args: [
      '--env=API_KEY=open-sesame',
      '--env=STAGE=production',
      '--set=a=b=DB_PASSWORD=correct-horse',
      '--x=dGVzdHRlc3Q='
    ],
    env: {
      WALLET_MNEMONIC: 'legal winner thank',
      RNG_SEED: 'seed-of-acme',
      LICENSE: 'license-of-acme',
      cardPin: 'number-of-card',
      CARD_PIN: 'number-of-acme',
      PINECONE_REGION: 'region-of-acme',
      SHIPPING: 'parcels-of-acme',
      SEEDS: 'plants-of-acme',
      LICENSE_FILE: '/etc/license-of-all'
    }
  })
  for (const secret of [
    ...['open-sesame', 'correct-horse', 'dGVzdHRlc3Q=', 'legal winner thank'],
    ...['seed-of-acme', 'license-of-acme', 'number-of-acme']
  ])
    t.equal(mask(`it is ${secret}.`), 'it is ***.')
  const text = 'production, region-of-acme, parcels-of-acme, plants-of-acme, /etc/license-of-all'
  t.equal(mask(text), text)
  t.end()
})

t.test('a child that cannot be signalled is noted in the log, however often it is tried', async (t) => {
  const { upstream, logged, supervisor } = await open(t)
  const { kill } = process
  const { kill: killChild } = ChildProcess.prototype
  const refusal = (): Error => Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
  // As for a child that has become another user: node emits an error for each signal.
  process.kill = () => {
    throw refusal()
  }
  ChildProcess.prototype.kill = function (this: ChildProcess) {
    return !this.emit('error', refusal())
  }
  try {
    upstream.destroy(new Error('now'))
    upstream.destroy(new Error('again'))
  } finally {
    process.kill = kill
    ChildProcess.prototype.kill = killChild
  }
  t.equal(logged.filter(({ reason }) => reason === 'EPERM').length, 2)
  t.equal(supervisor.count(), 1, 'it still counts')
  supervisor.killAllNow()
  await until(() => supervisor.count() === 0, 'once it can be signalled, it goes')
})
