// What goes into the file of a host, as text in the form of that file.

import { stringify as toml } from 'smol-toml'
import { stringify as yaml } from 'yaml'
import type { HostFile } from './hosts.ts'

const nested = ({ at, entry }: HostFile): Record<string, unknown> =>
  at.reduceRight<Record<string, unknown>>((inner, key) => ({ [key]: inner }), { ...entry })

export function snippetOf(file: HostFile): string {
  if (file.format === 'json') return JSON.stringify(nested(file), null, 2)
  return file.format === 'yaml' ? yaml(nested(file), { lineWidth: 0 }) : toml(nested(file))
}
