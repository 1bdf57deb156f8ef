// References in the files of other hosts, `${env:NAME}` and their kin, in the gateway's words.

import { quoted } from '../problems.ts'
import { isTree } from '../shape.ts'

export type Rewrite = ReturnType<typeof createRewrite>

/**
 * Translates the `${...}` of other hosts: `${env:NAME}`, `${input:id}`, and variables that only an editor has.
 * @param declared `inputs` of VS Code: `[{ id, description?, default? }]`; anything else counts as none
 * @returns the value with every reference in it rewritten; `label` names its server in notes
 */
export function createRewrite(declared: unknown, notes: string[]) {
  const inputs = new Map(
    (Array.isArray(declared) ? declared : []).filter(isTree).map((input) => [String(input['id']), input])
  )
  const told = new Set<string>()

  function tell(note: string): void {
    if (!told.has(note)) notes.push(note)
    told.add(note)
  }

  function input(id: string): string {
    const name = variableName(id)
    const about = inputs.get(id)
    const description = typeof about?.['description'] === 'string' ? ` (${about['description']})` : ''
    // A default with braces would end the reference early, so it has to be set by hand.
    const fallback =
      typeof about?.['default'] === 'string' && /^[^{}]+$/.test(about['default']) ? about['default'] : undefined
    tell(
      fallback === undefined
        ? `Set ${name} before the start${description}: VS Code asks for it as input ${quoted(id)}.`
        : `${name} may be set${description}; its default is kept.`
    )
    return `\${${name}${fallback === undefined ? '' : `:-${fallback}`}}`
  }

  function reference(inner: string, label: string): string {
    const [kind, ...rest] = inner.split(':')
    const name = rest.join(':')
    if (kind === 'input' && name !== '') return input(name)
    if (kind === 'env' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return `\${${name}}`
    if (inner === 'userHome') return '${HOME}'
    if (inner === 'pathSeparator' || inner === '/') return '/'
    if (/^[A-Za-z_][A-Za-z0-9_]*(:-[^]*)?$/.test(inner)) {
      if (/^workspaceFolder|^file[A-Z]|^cwd$/.test(inner))
        tell(`${label}: only an editor knows \${${inner}}. Set ${inner} before the start, or write the path.`)
      return `\${${inner}}`
    }
    const made = variableName(inner)
    tell(`${label}: \${${inner}} is not known here. Set ${made} before the start, or write the value.`)
    return `\${${made}}`
  }

  return function rewrite(value: unknown, label: string): unknown {
    if (typeof value === 'string') {
      // A "${" that is no reference there must not become one here.
      return value.replace(/\$\{(?:([^{}]+)\})?/g, (_all, inner: string | undefined) =>
        inner === undefined ? '$${' : reference(inner, label)
      )
    }
    if (Array.isArray(value)) return value.map((item) => rewrite(item, label))
    if (isTree(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rewrite(item, label)]))
    return value
  }
}

/** `github-token` -> `GITHUB_TOKEN` */
function variableName(id: string): string {
  const name = id
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase()
  return /^[A-Z]/.test(name) ? name : `INPUT_${name}`
}
