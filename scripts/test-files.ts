// Which test files a command runs, which of them share a process, and in which order they begin.

import { globSync } from 'node:fs'

/** What `npm test` leaves to `npm run test:long`, each with a short form that stays. */
const longForms = [
  // Memory, descriptors and children after each of thirty kinds of use. In `npm test`: `soak/soak`.
  'test/e2e/leaks.test.ts',
  // All attacks on availability. In `npm test`: one slice of several at once, descriptors, the neighbour alone, whom
  // it waits for, and those on memory in 600 MiB.
  'test/abuse/*.test.ts',
  // Every way in which one of three replicas fails. In `npm test`: `replicas/sessions`, `server-requests`, `http-sse`
  // and the chaos of `chaos/chaos`.
  'test/replicas/*.test.ts',
  'test/chaos/failover.test.ts',
  'test/control/replicas.test.ts',
  'test/store/redis-groups.test.ts',
  // In `npm test`: the suite for the older revision, and `interop/sdk-clients` with both generations of the SDK.
  'test/conformance/gateway-2026-07-28.test.ts',
  'test/interop/*.test.ts',
  'test/e2e/clients-*.test.ts'
]
const shortForms = [
  'test/abuse/descriptors.test.ts',
  'test/abuse/fair-order.test.ts',
  'test/abuse/memory.test.ts',
  'test/abuse/neighbour.test.ts',
  'test/replicas/sessions.test.ts',
  'test/replicas/server-requests.test.ts',
  'test/replicas/http-sse.test.ts',
  'test/interop/sdk-clients.test.ts',
  'test/e2e/clients-calls.test.ts'
]
/** Their long form is more of the same, which their own variable says (scripts/test.ts): they are in both. */
const longerFiles = ['test/e2e/accounts.test.ts', 'test/abuse/memory.test.ts']
/** Whose gateway may be several processes (test/kit/replicas.ts): `npm run replicas`. */
const replicated = ['test/matrix/matrix.test.ts', 'test/conformance/gateway-*.test.ts', 'test/interop/*.test.ts']
/** In Chromium, which not every machine has: `npm run browser`. */
const inBrowser = ['test/console/*.test.ts', 'test/browser/*.test.ts']

/** Real processes and foreign peers throughout. Each of their files has a process of its own, and they begin first. */
const ownProcess = [
  ...['chaos', 'abuse', 'conformance', 'e2e', 'interop', 'matrix', 'replicas', 'control', 'cli'],
  ...['fuzz', 'isolation', 'soak', 'trace', 'deploy', 'containers', 'bench']
]
/** Left out by `npm run test:fast`. */
const outOfFast = new Set(['conformance', 'e2e', 'http', 'interop', 'matrix', 'replicas', 'security'])
/** Files of one folder that share a process: two thirds of the CPU of a short file load tap and the gateway. */
const filesTogether = 8

type Part = 'all' | 'fast' | 'long' | 'replicas' | 'browser'

/**
 * @param part which command asks
 * @returns the files of each process, those that take long first
 */
export function testFiles(part: Part, root: string): Array<readonly string[]> {
  const find = (patterns: readonly string[]): string[] =>
    patterns.flatMap((pattern) => globSync(pattern, { cwd: root }).toSorted())
  if (part === 'replicas') return alone(find(replicated))
  if (part === 'browser') return alone(find(inBrowser))
  const kept = new Set(shortForms)
  const long = find(longForms).filter((file) => !kept.has(file))
  if (part === 'long') return alone([...longerFiles, ...long])
  const others = new Set([...long, ...find(inBrowser)])
  const files = find(['test/**/*.test.ts']).filter(
    (file) => !others.has(file) && (part === 'all' || !outOfFast.has(folder(file)))
  )
  const byFolder = Map.groupBy(files, folder)
  const inOrder = [...ownProcess, ...[...byFolder.keys()].filter((name) => !ownProcess.includes(name))]
  return inOrder.flatMap((name) => {
    const here = byFolder.get(name) ?? []
    return ownProcess.includes(name) ? alone(here) : together(here)
  })
}

/** The first folder below `test`, or the file itself. */
function folder(file: string): string {
  return file.split('/')[1] ?? ''
}

function alone(files: readonly string[]): Array<readonly string[]> {
  return files.map((file) => [file])
}

/** Groups of about the same size. */
function together(files: readonly string[]): Array<readonly string[]> {
  const groups = Math.ceil(files.length / filesTogether)
  const size = Math.ceil(files.length / groups)
  return Array.from({ length: groups }, (_, at) => files.slice(at * size, (at + 1) * size))
}
