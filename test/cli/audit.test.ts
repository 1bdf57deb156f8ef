// `audit export` and `audit verify`, as somebody types them.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { readArguments } from '../../src/cli/arguments.ts'
import { runAuditVerify } from '../../src/cli/store/verify.ts'
import { key } from '../kit/gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { serve } from '../kit/process.ts'
import { cli } from './kit.ts'

const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')

/** In a process of its own. */
function exported(...args: readonly string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, 'audit', 'export', ...args], {
    encoding: 'utf8'
  })
  return { code: status, out: stdout, err: stderr }
}

const rest = { env: {}, stderr: process.stderr }

/** In this process. @throws UsageError */
async function verified(text: string, key?: string, days?: string): Promise<{ code: number; out: string }> {
  const lines: string[] = []
  const stdout = { write: (line: string) => lines.push(line) }
  const options = { ...(key !== undefined && { key }), ...(days !== undefined && { 'retention-days': days }) }
  const code = await runAuditVerify({ operands: ['-'], options }, { ...rest, stdin: Readable.from([text]), stdout })
  return { code, out: lines.join('') }
}

t.test('the records of a gateway that has ended are exported, and verified', async (t) => {
  const folder = t.testdir()
  const config = {
    listen: { port: 0 },
    store: `file:${join(folder, 'g.db')}`,
    audit: {},
    tenants: { acme: { auth: { keys: [{ name: 'test', key }] }, upstreams: {} } }
  }
  const file = join(folder, 'gatehouse.json')
  writeFileSync(file, JSON.stringify(config))
  const gateway = await serve(t, config)
  const client = await legacyClient(`${gateway.url}/t/acme/mcp`, key)
  await client.request('tools/list')
  t.match(exported('--config', file), { code: 1, out: '', err: /in use|locked|another/i }, 'while it runs')
  await gateway.stop()

  const { code, out } = exported('--config', file, '--tenant', 'acme')
  t.equal(code, 0)
  const records = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { kind: string; publicKey?: string })
  t.same(records.map(({ kind }) => kind).toSorted(), ['begin', 'call', 'end', 'session'])
  const publicKey = records.find(({ kind }) => kind === 'begin')?.publicKey ?? ''
  t.match(await verified(out, publicKey), {
    code: 0,
    out: '4 records in 1 chain, 2 signatures: nothing is missing or altered\n'
  })
  const asData = async (text: string): Promise<object> =>
    JSON.parse((await cli(['audit', 'verify', '-', '--json'], {}, text)).out) as object
  t.match(await asData(out), {
    records: 4,
    chains: 1,
    signatures: 2,
    keys: [publicKey],
    problems: [],
    isTrusted: false
  })
  t.match(await asData(out.replace('"kind":"call"', '"kind":"cell"')), { problems: [/./] })
  const altered = await verified(out.replace('tools/list', 'tools/call'), publicKey)
  t.match(altered, { code: 1, out: /^wrong: record \d of acme\/.* was altered\n4 records .*: 1 problem\n$/ })
  t.match(await verified(''), { code: 1, out: /there are no records/ })

  t.match(await verified(out.replaceAll('\n', '\r\n'), publicKey), { code: 0 }, 'a transfer made other line ends of it')
  const keys = join(folder, 'keys.txt')
  writeFileSync(keys, `${'A'.repeat(43)}\n${publicKey}\n`)
  t.match(await verified(out, keys), { code: 0 }, 'one of the keys that were in use')
  const cutOff = await verified(out.split('\n').slice(0, 2).join('\n'), publicKey)
  t.match(cutOff, {
    code: 0,
    out: /^note: nothing vouches yet .*\nnote: acme\/.* has no end: .*\n2 records in 1 chain/
  })

  // As it is where files are rotated, and the first one is not given.
  const rotated = out.slice(out.indexOf('\n') + 1)
  t.match(await verified(rotated, publicKey), { code: 1, out: /or are in files that were not given/ })
  for (const days of ['90', '1'])
    t.match(await verified(rotated, publicKey, days), { code: 1 }, `not after ${days} days yet`)
  t.match(await verified(rotated, publicKey, '0'), { code: 0, out: /^note: acme\/.* begins with record 2: .*\n3 rec/ })
  const bent = rotated.replace('tools/list', 'tools/call')
  t.match(await verified(bent, publicKey, '0'), { code: 1, out: /was altered/ }, 'a file by itself is judged, too')

  // The tenant is taken out of the configuration: its records are there until their time is over.
  const other = { ...config, tenants: { other: { auth: { keys: [{ name: 'test', key }] }, upstreams: {} } } }
  writeFileSync(file, JSON.stringify(other))
  t.match(exported('--config', file, '--tenant', 'acme'), { code: 0, out })
  t.match(exported('--config', file), { code: 0, out }, 'all that are known')
  t.match(exported('--config', file, '--tenant', 'nobody'), {
    code: 2,
    err: /There is no tenant "nobody", and no record/
  })
})

t.test('only a line feed ends a record, and a line without end does not fill the memory', async (t) => {
  const strange = `{"chain":"acme/a-1","seq":1,"prev":"","time":"${new Date().toISOString()}","kind":"call","name":"a\u2028b\u0085c\rd"}`
  t.match(await verified(strange.replace('\r', '')), { out: /1 record in 1 chain/ })
  const input = Readable.from(Array.from({ length: 64 }, () => 'x'.repeat(262_144)))
  const lines: string[] = []
  const stdout = { write: (line: string) => lines.push(line) }
  t.equal(await runAuditVerify({ operands: ['-'], options: {} }, { ...rest, stdin: input, stdout }), 1)
  t.match(lines.join(''), /wrong: line 1 is no record of an audit log\n1 record in 0 chains/)
})

t.test('mistakes are answered by what to write instead', async (t) => {
  const io = { ...rest, stdin: Readable.from([]), stdout: { write() {} } }
  await t.rejects(runAuditVerify({ operands: ['nobody.jsonl'], options: {} }, io), {
    message: /^nobody\.jsonl cannot be read\. Give the path/
  })
  await t.rejects(verified('', undefined, 'a week'), { message: /^--retention-days must be a number of days/ })
  await t.rejects(verified('', 'short'), { message: /^--key must be the public key/ })
  t.match(readArguments(['audit', 'verify', 'a.jsonl', '--key', 'k']), {
    operands: ['a.jsonl'],
    options: { key: 'k' }
  })
  t.match(readArguments(['audit', 'export', '--config', 'c']), {
    command: { name: 'audit export' },
    options: { config: 'c' }
  })
})
