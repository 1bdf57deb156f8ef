// docs/protocol-eras.md, made of what a run of the matrix has shown and of the words of the table.

import type { Revision } from '../../src/protocol/messages.ts'
import type { Kind, Seen } from './cell.ts'
import { expected } from './table.ts'
import { clients, featureNames, type Ran, servers } from './run.ts'

const marks: Readonly<Record<Kind, string>> = { passes: '=', translated: '~', impossible: '-' }
const revisions = [...new Set(servers.map(({ revision }) => revision))]

const intro = `# Any client with any server

*Written by \`node scripts/eras.ts\` from a run of test/matrix; do not edit.*

Every revision of MCP on the client's side meets every revision on the server's side, over every transport that the revision has: stdio, HTTP+SSE for 2024-11-05,
Streamable HTTP from 2025-03-26 on. Clients of 2024-11-05 use HTTP+SSE, the others Streamable HTTP. The servers and clients of the run are strict: each holds
everything that it gets against the specification's schema of its own revision, and whatever that does not know, members, methods, content and error codes alike, fails the cell.
The endpoints have one upstream each, and the servers are declared what the client declared.
`

/** @param ran all cells, each as the table expects it */
export function eraPage(ran: readonly Ran[]): string {
  return [
    intro,
    '## At a glance\n',
    `\`=\` passes as it is, \`~\` translated, \`-\` impossible. Each cell has five marks, for clients of ${sentence(clients)}.\n`,
    `| feature | ${revisions.map((revision) => `server ${revision}`).join(' | ')} |`,
    `|---|${revisions.map(() => '---|').join('')}`,
    ...featureNames.map(
      (feature) =>
        `| ${feature} | ${revisions.map((server) => `\`${clients.map((client) => markOf(ran, feature, client, server)).join('')}\``).join(' | ')} |`
    ),
    '',
    '## How, and why not\n',
    'What is missing here passes. A range of revisions means all in it.\n',
    '| clients → servers | features | |',
    '|---|---|---|',
    ...rowsOf(ran),
    '',
    'A result with `isError` is read by the model, an error of JSON-RPC by the host; -32602 for what servers of a revision cannot have means that there is no such tool.\n'
  ].join('\n')
}

/** The least of what the transports of a pair show. */
function markOf(ran: readonly Ran[], feature: string, client: Revision, server: Revision): string {
  const kinds = new Set(
    ran
      .filter((cell) => cell.feature === feature && cell.client === client && cell.revision === server)
      .map(({ seen }) => seen?.kind)
  )
  const least = (['impossible', 'translated', 'passes'] as const).find((kind) => kinds.has(kind))
  return least === undefined ? '?' : marks[least]
}

/** One row for what has the same words for the same pairs. */
function rowsOf(ran: readonly Ran[]): string[] {
  const rows = new Map<string, string[]>()
  for (const feature of featureNames) {
    const groups = new Map<string, Ran[]>()
    for (const cell of ran) {
      if (cell.feature !== feature || cell.seen === undefined || cell.seen.kind === 'passes') continue
      const words = wordsOf(cell.seen, expected(feature, cell.client, cell.revision, cell.transport)?.text)
      groups.set(words, [...(groups.get(words) ?? []), cell])
    }
    for (const [words, cells] of groups) {
      const key = JSON.stringify([pairs(cells), words])
      rows.set(key, [...(rows.get(key) ?? []), feature])
    }
  }
  return [...rows].map(([key, names]) => {
    const [at, words] = JSON.parse(key) as [string, string]
    return `| ${at} | ${names.join('; ')} | ${words} |`
  })
}

function wordsOf({ kind, error }: Seen, text = ''): string {
  if (kind === 'translated') return `translated: ${text}`
  return `impossible (${error === 'isError' ? 'result with `isError`' : error === 'silence' ? 'nothing comes' : `error ${error}`}): ${text}`
}

/** The pairs of some cells, with as few words as possible. */
function pairs(cells: readonly Ran[]): string {
  const byServers = new Map<string, Revision[]>()
  for (const client of clients) {
    const at = revisions.filter((server) => cells.some((cell) => cell.client === client && cell.revision === server))
    const whole = at.every((server) =>
      servers
        .filter(({ revision }) => revision === server)
        .every(({ transport }) =>
          cells.some((cell) => cell.client === client && cell.revision === server && cell.transport === transport)
        )
    )
    if (!whole) throw new Error(`the transports of client ${client} differ, which the page has no words for`)
    if (at.length > 0) byServers.set(range(at), [...(byServers.get(range(at)) ?? []), client])
  }
  return [...byServers].map(([at, clients]) => `${range(clients)} → ${at}`).join('; ')
}

function range(some: readonly Revision[]): string {
  const [first] = some as readonly [Revision]
  const last = some.at(-1) as Revision
  if (some.length === clients.length) return 'any'
  if (some.length === 1) return first
  const unbroken = clients.indexOf(last) - clients.indexOf(first) + 1 === some.length
  return !unbroken
    ? some.join(', ')
    : last === clients.at(-1)
      ? `from ${first} on`
      : first === clients[0]
        ? `up to ${last}`
        : `${first} to ${last}`
}

const sentence = (words: readonly string[]): string =>
  `${words.slice(0, -1).join(', ')} and ${String(words.at(-1))}, in this order`
