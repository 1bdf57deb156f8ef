// Notes about servers in another host's file that may not work as intended here: hosts that start servers by a shell
// expand text which is literal here, and secrets are in clear text.

import { quoted } from '../problems.ts'
import { secretArguments, secretForms } from '../secret-values.ts'
import { treeOf, type Tree } from '../shape.ts'

/** Values of examples that have to be replaced. */
const placeholder = /^(?:your|my|<|xxx|change)|_here$/i
const shells = /(?:^|\/)(?:ba|z|fi|da)?sh$|^cmd(?:\.exe)?$|powershell/i

/** Notes, none of which repeats a value. */
export function doubtsAbout(name: string, upstream: Tree): string[] {
  const { command, args, cwd } = upstream
  const label = `Server ${quoted(name)}`
  const notes: string[] = []
  const list = (Array.isArray(args) ? args : []).filter((each) => typeof each === 'string')
  for (const [place, name] of secretsIn(upstream, list)) {
    const variable = name
      .replace(/[^A-Za-z0-9]+/g, '_')
      .replace(/^_+/, '')
      .toUpperCase()
    notes.push(
      `${label}: ${place} is a secret in clear, or holds one. Put it into the environment and write ` +
        `\${${variable}}, or into a file and write \${file:PATH}.`
    )
  }
  const texts = [command, cwd, ...list, ...Object.values(treeOf(upstream['env']))]
  if (texts.some((text) => typeof text === 'string' && /^~(?:\/|$)/.test(text)))
    notes.push(`${label}: nothing expands "~" here. Write \${HOME} in its place.`)
  if (typeof command === 'string' && /\s/.test(command) && list.length === 0)
    notes.push(`${label}: its command holds arguments. It is started without a shell: put each into args.`)
  const isShell = typeof command === 'string' && shells.test(command)
  if (!isShell && list.some((text) => /^(?:&&|\|\|?|;|>>?|<)$|\$\(|`/.test(text)))
    notes.push(
      `${label}: its args are for a shell, and none starts it. Write command: sh, args: [-c, …] if it needs one.`
    )
  return notes
}

/** Where secrets stand in clear, each with what a variable for it could be called. */
function secretsIn(upstream: Tree, args: readonly string[]): ReadonlyArray<readonly [place: string, name: string]> {
  const { url, auth } = upstream
  const named = Object.entries({ env: upstream['env'], headers: upstream['headers'], auth }).flatMap(([member, all]) =>
    Object.entries(treeOf(all))
      .filter(([key, value]) => typeof value === 'string' && isInClear(value, secretForms(key, value)))
      .map(([key]) => [`${member}.${key}`, key] as const)
  )
  const inArgs = args.flatMap((arg, at) => {
    // `--header "Authorization: Bearer …"` of mcp-remote.
    const [, header, value = ''] = /^([\w-]+):\s*(.+)$/.exec(arg) ?? []
    const before = args.slice(Math.max(0, at - 1), at)
    const forms = header === undefined ? secretArguments([...before, arg]) : secretForms(header, value)
    const own = forms.filter((form) => arg.includes(form))
    const name = header ?? /^-*([\w-]+)=/.exec(arg)?.[1] ?? before.find((each) => each.startsWith('--')) ?? 'SECRET'
    return isInClear(header === undefined ? arg : value, own) ? [[`args[${at}]`, name] as const] : []
  })
  return [...named, ...inArgs, ...(typeof url === 'string' && isUrlWithSecret(url) ? [['url', 'SECRET'] as const] : [])]
}

/** Of what is secret in a text. */
const isInClear = (text: string, forms: readonly string[]): boolean =>
  !text.includes('${') && forms.some((form) => form.length >= 8 && !placeholder.test(form.replace(/^\S+\s+/, '')))

function isUrlWithSecret(text: string): boolean {
  const url = text.includes('${') ? null : URL.parse(text)
  if (url === null) return false
  const { username, password, searchParams } = url
  return (
    [username, password].some((part) => part !== '' && !placeholder.test(part)) ||
    [...searchParams].some(([name, value]) => isInClear(value, secretForms(name, value)))
  )
}
