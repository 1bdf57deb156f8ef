// What a server of another host's file probably does not mean as it stands: hosts that start servers by a shell expand
// what stays as it is here, and secrets stand in clear in files that are passed on.

import { quoted } from '../problems.ts'
import { treeOf, type Tree } from '../shape.ts'

const secretName = /key|token|secret|passw|credential|authorization/i
/** Of an example, to be replaced. */
const placeholder = /^(?:your|my|<|xxx|change)|_here$/i
const shells = /(?:^|\/)(?:ba|z|fi|da)?sh$|^cmd(?:\.exe)?$|powershell/i

/** Notes, none of which repeats a value. */
export function doubtsAbout(name: string, upstream: Tree): string[] {
  const { command, args, cwd } = upstream
  const label = `Server ${quoted(name)}`
  const notes: string[] = []
  const list = (Array.isArray(args) ? args : []).filter((each) => typeof each === 'string')
  for (const member of ['env', 'headers'])
    for (const [key, value] of Object.entries(treeOf(upstream[member]))) {
      const isSecret =
        secretName.test(key) &&
        typeof value === 'string' &&
        value.length >= 8 &&
        !value.includes('${') &&
        !placeholder.test(value)
      if (!isSecret) continue
      const variable = key.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase()
      notes.push(
        `${label}: ${member}.${key} is a secret in clear. Put it into the environment and write \${${variable}}, or ` +
          `into a file and write \${file:PATH}.`
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
