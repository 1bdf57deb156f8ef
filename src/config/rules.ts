// Rules between values of a configuration: names must exist, nothing is given twice, and nobody is let in by accident.
// Works on trees that may have other faults, so that all problems are reported at once.

import { createHash } from 'node:crypto'

import { isLoopback } from './loopback.ts'
import { didYouMean, quoted, type Path, type Report } from './problems.ts'
import { configDefaults, reservedEndpointNames } from './schema/schema.ts'
import { isTree, type Tree } from './schema/shape.ts'

const tree = (value: unknown): Tree => (isTree(value) ? value : {})
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** @param host overrides the listen address of the file */
export function checkRules(config: unknown, report: Report, host: string | undefined): void {
  const root = tree(config)
  const bound = host ?? text(tree(root['listen'])['host']) ?? configDefaults.host
  if (!isLoopback(bound) && root['publicUrl'] === undefined) {
    report.add(['publicUrl'], {
      message: 'is missing, and the gateway listens beyond this machine',
      suggestion:
        'Give the origin that clients use, such as https://mcp.example.com: tokens are checked against it. Or ' +
        'listen on 127.0.0.1.'
    })
  }
  for (const [id, value] of Object.entries(tree(root['tenants']))) {
    const path = ['tenants', id]
    checkAuth(
      tree(value)['auth'],
      [...path, 'auth'],
      report,
      isLoopback(bound) && isOwnMachine(text(root['publicUrl']))
    )
    checkHeaders(tree(tree(value)['upstreams']), [...path, 'upstreams'], report)
    checkEras(tree(tree(value)['upstreams']), [...path, 'upstreams'], report)
    checkEndpoints(tree(value), path, report)
  }
}

/** With a public name, a proxy makes a gateway that listens on loopback reachable for everybody. */
function isOwnMachine(publicUrl: string | undefined): boolean {
  return publicUrl === undefined || !URL.canParse(publicUrl) || isLoopback(new URL(publicUrl).hostname)
}

function checkAuth(auth: unknown, path: Path, report: Report, local: boolean): void {
  if (auth === 'none' && !local) {
    report.add(path, {
      message: 'must not be none: the gateway can be reached from beyond this machine',
      suggestion: 'Add issuers or keys, or listen on 127.0.0.1 without a publicUrl of another machine.'
    })
  }
  if (!isTree(auth)) return
  const issuers = list(auth['issuers'])
  const keys = list(auth['keys'])
  if (issuers.length === 0 && keys.length === 0) {
    report.add(path, {
      message: 'lets nobody in: it has neither issuers nor keys',
      suggestion: 'Add an issuer or a key; auth: none is for loopback only.'
    })
  }
  checkDoubles(
    issuers.map((issuer) => text(tree(issuer)['issuer'])),
    (index) => [...path, 'issuers', index, 'issuer'],
    'is the same issuer as',
    report
  )
  checkDoubles(
    keys.map((key) => text(tree(key)['name'])),
    (index) => [...path, 'keys', index, 'name'],
    'is the same name as that of',
    report
  )
  checkDoubles(
    keys.map((key) => keyDigest(tree(key))),
    (index) => [...path, 'keys', index],
    'is the same key as',
    report
  )
  keys.forEach((key, index) => {
    const given = ['key', 'sha256'].filter((name) => tree(key)[name] !== undefined)
    if (!isTree(key) || given.length === 1) return
    report.add(
      [...path, 'keys', index],
      given.length === 0
        ? { message: 'has neither key nor sha256', suggestion: 'Give the key as key: "${NAME}", or its SHA-256.' }
        : { message: 'has both key and sha256', suggestion: 'Remove one of the two.' }
    )
  })
}

/** SHA-256 of an API key in lower-case hexadecimal, given as itself or as its digest. */
export function keyDigest(key: { readonly key?: unknown; readonly sha256?: unknown }): string | undefined {
  if (typeof key.sha256 === 'string') return key.sha256.toLowerCase()
  return typeof key.key === 'string' ? createHash('sha256').update(key.key).digest('hex') : undefined
}

function checkDoubles(
  values: readonly (string | undefined)[],
  place: (index: number) => Path,
  what: string,
  report: Report
): void {
  const first = new Map<string, number>()
  values.forEach((value, index) => {
    if (value === undefined) return
    const earlier = first.get(value)
    if (earlier === undefined) first.set(value, index)
    else
      report.add(place(index), {
        message: `${what} entry ${earlier + 1}`,
        suggestion: 'Remove or change one of the two.'
      })
  })
}

// HTTP+SSE is the transport of 2024-11-05; revisions without a handshake do not have it.
function checkEras(upstreams: Tree, path: Path, report: Report): void {
  for (const [name, upstream] of Object.entries(upstreams)) {
    const { type, era } = tree(upstream)
    if (type === 'sse' && era === 'modern') {
      report.add([...path, name, 'era'], {
        message: 'must not be modern where type is sse: HTTP+SSE has no such revision',
        suggestion: 'Remove era, or give the URL of its Streamable HTTP endpoint and type: streamable-http.'
      })
    }
  }
}

// Header names are case-insensitive, so that a YAML map can contain one twice.
function checkHeaders(upstreams: Tree, path: Path, report: Report): void {
  for (const [name, upstream] of Object.entries(upstreams)) {
    const names = Object.keys(tree(tree(upstream)['headers']))
    checkDoubles(
      names.map((header) => header.toLowerCase()),
      (index) => [...path, name, 'headers', names[index] ?? ''],
      'is the same header as',
      report
    )
  }
}

function checkEndpoints(tenant: Tree, path: Path, report: Report): void {
  const known = Object.keys(tree(tenant['upstreams']))
  for (const [name, endpoint] of Object.entries(tree(tenant['endpoints']))) {
    const place = [...path, 'endpoints', name]
    if (reservedEndpointNames.includes(name))
      report.add(place, {
        message: 'is a reserved name',
        suggestion: `Choose another one; reserved are ${reservedEndpointNames.join(', ')}.`
      })
    const members = list(tree(endpoint)['upstreams'])
    const names = members.map((member) => text(member) ?? text(tree(member)['upstream']))
    const at = (index: number): Path => [...place, 'upstreams', index, ...(isTree(members[index]) ? ['upstream'] : [])]
    names.forEach((upstream, index) => {
      if (upstream === undefined || known.includes(upstream)) return
      report.add(at(index), {
        message: 'names an upstream that this tenant does not have',
        suggestion:
          didYouMean(upstream, known) ??
          (known.length === 0 ? 'Add it under upstreams.' : `It has: ${known.slice(0, 20).map(quoted).join(', ')}.`)
      })
    })
    checkDoubles(names, at, 'is the same upstream as', report)
  }
}
