// The commands about policies, which need a configuration only: `explain` and `policy test`.

import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { loadConfig } from '../config/load.ts'
import { countOf } from '../config/problems.ts'
import { routeKinds, routeOutcomes } from '../config/schema/policy.ts'
import type { Endpoint, Snapshot, Tenant } from '../config/snapshot.ts'
import { parseJson } from '../protocol/json.ts'
import { finished } from '../protocol/json-steps.ts'
import { isObject } from '../protocol/messages.ts'
import { explainRoute, QuestionError, type RouteAnswer, type RouteQuestion } from '../relay/methods/explain.ts'
import { UsageError } from './commands/command.ts'
import { orProblems, type Output } from './offline.ts'
import { jsonText } from './printed.ts'

interface Asked extends RouteQuestion {
  /** `/t/acme/mcp`, or TENANT, or TENANT/ENDPOINT. */
  readonly endpoint: string
}

/** Why a caller may use something or not, by a file. @throws UsageError. @returns the exit code: 0 in any case */
export async function runExplain(
  { config, json, ...options }: Readonly<Record<string, string | undefined>> & { readonly config: string },
  { env, stdout }: { readonly env: NodeJS.ProcessEnv; readonly stdout: Output }
): Promise<number> {
  const asked = questionOf(options)
  return await orProblems(config, stdout, async () => {
    const answer = explain(await loadConfig(config, { env }), asked)
    // Nothing was started that could be asked.
    const left = answer.outcome === 'allowed' ? `A file does not say whether there is ${asked.route}.\n` : ''
    stdout.write(json !== undefined ? jsonText(answer) : textOfAnswer(answer) + left)
    return 0
  })
}

/** What the options of `explain` ask. @throws UsageError */
export function questionOf({ caller, arguments: args, ...rest }: Readonly<Record<string, string | undefined>>): Asked {
  if (kinds.filter((kind) => rest[kind] !== undefined).length !== 1)
    throw new UsageError(`explain takes one of ${kinds.map((kind) => `--${kind}`).join(', ')}, as UPSTREAM/NAME.`)
  if (rest['endpoint'] === undefined)
    throw new UsageError('explain needs --endpoint: /t/TENANT/mcp, TENANT or TENANT/ENDPOINT.')
  const given = {
    ...rest,
    ...(caller !== undefined && { caller: parsed(caller, '--caller') }),
    ...(args !== undefined && { arguments: parsed(args, '--arguments') })
  }
  return askedBy(given, 'explain')
}

export function textOfAnswer({ sentence, rules }: Pick<RouteAnswer, 'sentence' | 'rules'>): string {
  const lines = rules.map(
    ({ name, of, effect, applies, because }) =>
      `  ${applies === null ? '?' : applies ? '+' : '-'} ${name} (${effect}, ${of}): ${because}`
  )
  return [sentence, ...lines, ''].join('\n')
}

/**
 * Runs the tests of a policy: a YAML or JSON file with `config`, the path of the configuration, and `tests`; or a
 * configuration, for those that stand in its policies.
 * @returns the exit code: 1 where one fails, or there is none
 */
export async function runPolicyTests(
  file: string,
  { json }: Readonly<Record<string, string | undefined>>,
  { env, stdout }: { readonly env: NodeJS.ProcessEnv; readonly stdout: Output }
): Promise<number> {
  const { config, tests: given } = await readTests(file)
  const configFile = config === undefined ? file : resolve(dirname(file), config)
  const run = async (): Promise<number> => {
    const snapshot = await loadConfig(configFile, { env })
    const tests = given ?? testsOf(snapshot)
    const results = tests.map((test, index): TestResult => {
      const place = `${file}: test ${index + 1}`
      const expected = expectedBy(test, place)
      const { outcome, sentence, rules } = explain(snapshot, askedBy(test, place))
      return { title: titleOf(test), isMet: outcome === expected, expected, outcome, sentence, rules }
    })
    const failed = results.filter(({ isMet }) => !isMet).length
    const passed = results.length - failed
    const isNone = results.length === 0
    const problem = `${file} has no tests. Put some under "tests", or under "policy.tests" of a configuration.`
    if (json !== undefined) stdout.write(jsonText({ passed, failed, tests: results, ...(isNone && { problem }) }))
    else if (isNone) stdout.write(`${problem}\n`)
    else stdout.write(`${results.map(textOfResult).join('')}${countOf(passed, 'test')} passed, ${failed} failed\n`)
    return failed === 0 && !isNone ? 0 : 1
  }
  return await orProblems(configFile, stdout, run, json === undefined ? 'text' : 'json')
}

interface TestResult extends Pick<RouteAnswer, 'outcome' | 'sentence' | 'rules'> {
  readonly title: string
  readonly isMet: boolean
  readonly expected: string
}

const textOfResult = ({ title, isMet, expected, outcome, ...answer }: TestResult, index: number): string =>
  `${isMet ? 'ok' : 'not ok'} ${index + 1} - ${title}\n` +
  (isMet ? '' : `  expected ${expected}, is ${outcome}. ${textOfAnswer(answer)}`)

const outcomes: readonly string[] = routeOutcomes
const kinds = routeKinds
type Test = Readonly<Record<string, unknown>>

/** Those that stand in the policies of a configuration, as a file of tests has them. */
const testsOf = ({ tenants }: Snapshot): Test[] =>
  [...tenants.values()].flatMap(({ id, policy, endpoints }) =>
    [{ policy, of: undefined }, ...[...endpoints.values()].map((each) => ({ policy: each.policy, of: each.name }))]
      .flatMap(({ policy: { tests = [] } = {}, of }) =>
        tests.map((test) => ({ ...test, endpoint: of ?? test.endpoint }))
      )
      .map(({ endpoint, kind, name, ...test }) => ({ ...test, endpoint: `${id}/${endpoint}`, [kind]: name }))
  )

/** @returns neither of them of a configuration. @throws UsageError */
async function readTests(file: string): Promise<{ readonly config?: string; readonly tests?: readonly Test[] }> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) throw new UsageError(`${file} cannot be read. Give the path of a file with policy tests.`)
  const content = parsed(text, file)
  const { config, tests, tenants } = isObject(content) ? content : {}
  if (tenants !== undefined && config === undefined && tests === undefined) return {}
  if (typeof config !== 'string' || !Array.isArray(tests) || !tests.every(isObject))
    throw new UsageError(
      `${file} must have "config", the path of a configuration, and "tests", a list of objects; or be a configuration.`
    )
  return { config, tests }
}

/** @throws UsageError */
function expectedBy(test: Test, place: string): string {
  const expected = stringOf(test, 'expect', place)
  if (!outcomes.includes(expected)) throw new UsageError(`${place}: "expect" must be one of ${outcomes.join(', ')}.`)
  return expected
}

/** @throws UsageError */
function askedBy(test: Test, place: string): Asked {
  const members = ['name', 'endpoint', 'caller', 'arguments', 'address', 'at', 'expect', ...kinds]
  const unknown = Object.keys(test).find((member) => !members.includes(member))
  if (unknown !== undefined) throw new UsageError(`${place} has "${unknown}". Known: ${members.join(', ')}.`)
  const [kind, ...others] = kinds.filter((kind) => test[kind] !== undefined)
  if (kind === undefined || others.length > 0)
    throw new UsageError(`${place} must name exactly one of ${kinds.join(', ')}, as UPSTREAM/NAME.`)
  return {
    endpoint: stringOf(test, 'endpoint', place),
    caller: test['caller'],
    kind,
    route: stringOf(test, kind, place),
    args: test['arguments'],
    address: test['address'] === undefined ? undefined : stringOf(test, 'address', place),
    now: timeOf(test['at'], place)
  }
}

function stringOf(test: Test, member: string, place: string): string {
  const value = test[member]
  if (typeof value !== 'string') throw new UsageError(`${place} needs "${member}", a text.`)
  return value
}

const titleOf = ({ name, endpoint, caller, arguments: args, at: _at, expect: _expect, ...route }: Test): string =>
  typeof name === 'string'
    ? name
    : `${JSON.stringify(caller ?? {})} ${String(endpoint)} ${String(Object.values(route)[0])}` +
      (args === undefined ? '' : ` ${JSON.stringify(args)}`)

/** @throws UsageError */
function timeOf(value: unknown, place: string): Date {
  if (value === undefined) return new Date()
  const time = new Date(typeof value === 'string' ? value : '')
  if (Number.isNaN(time.getTime()))
    throw new UsageError(`${place}: ${JSON.stringify(value)} is no time. Write it as 2026-07-28T09:00:00Z.`)
  return time
}

/** @throws UsageError */
function parsed(text: string, place: string): unknown {
  try {
    // As in a call, where it is JSON: YAML rounds long numbers.
    return text.startsWith('{"') ? parseJson(Buffer.from(text)) : parse(text)
  } catch (error) {
    const [line = ''] = (error as Error).message.split('\n')
    throw new UsageError(`${place} is neither YAML nor JSON: ${line}`)
  }
}

/** @throws UsageError where the configuration has no such endpoint or upstream, or the caller cannot be */
function explain(snapshot: Snapshot, { endpoint: wanted, ...question }: Asked): RouteAnswer {
  const { tenant, endpoint } = endpointOf(snapshot, wanted)
  try {
    return finished(explainRoute(tenant, endpoint, question))
  } catch (error) {
    throw error instanceof QuestionError ? new UsageError(error.message) : error
  }
}

function endpointOf({ tenants }: Snapshot, wanted: string): { readonly tenant: Tenant; readonly endpoint: Endpoint } {
  const all = [...tenants.values()].flatMap((tenant) =>
    [...tenant.endpoints.values()].map((endpoint) => ({ tenant, endpoint }))
  )
  const names = ({ tenant, endpoint }: (typeof all)[number]): string[] => [
    endpoint.path,
    `${tenant.id}/${endpoint.name}`,
    ...(String(endpoint.name) === 'default' ? [tenant.id] : [])
  ]
  const found = all.find((each) => names(each).includes(wanted))
  if (found !== undefined) return found
  throw new UsageError(
    `There is no endpoint "${wanted}". Known: ${all.map(({ endpoint }) => endpoint.path).join(', ')}.`
  )
}
