// The values that references have inserted into a tenant: into arguments of tools, which are then hidden from callers,
// and into definitions, in whose servers' messages they are masked.

import type { TenantId } from '../protocol/messages.ts'
import type { ToolChange } from '../protocol/translate/change-tool.ts'
import type { InsertedText } from './references.ts'
import { isPlace } from './secret-values.ts'
import type { UpstreamDefinition } from './snapshot.ts'

/** A value of `fixed` or `defaults` that came from a reference. */
interface ArgumentReference extends Pick<InsertedText, 'texts'> {
  readonly endpoint: string
  /** UPSTREAM/NAME */
  readonly tool: string
  readonly kind: string
  readonly argument: string
}

export const argumentReferences = (id: TenantId, inserted: readonly InsertedText[]): ArgumentReference[] =>
  inserted.flatMap(({ path, texts }) => {
    const [tenants, tenant, endpoints, endpoint = '', tools, tool = '', kind = '', argument = ''] = path.map(String)
    const isArgument = tenants === 'tenants' && tenant === id && endpoints === 'endpoints' && tools === 'tools'
    return isArgument && ['fixed', 'defaults'].includes(kind) ? [{ endpoint, tool, kind, argument, texts }] : []
  })

/** Not part of the hash: its values are part of the definition. */
export function insertedInto(
  id: TenantId,
  upstream: string,
  inserted: readonly InsertedText[],
  secrets: readonly string[]
): Pick<UpstreamDefinition, 'argumentSecrets' | 'references'> {
  const own = inserted.filter(
    ({ path: [, tenant, kind, name] }) => tenant === id && kind === 'upstreams' && name === upstream
  )
  if (own.length === 0) return {}
  const references = own.flatMap(({ texts: [, ...parts] }) => parts.filter((part) => !isPlace(part)))
  return { argumentSecrets: [...new Set([...secrets, ...own.flatMap((each) => each.secrets)])], references }
}

export const withHiddenDefaults = (
  tools: Readonly<Record<string, ToolChange>>,
  references: readonly ArgumentReference[]
): Readonly<Record<string, ToolChange>> =>
  Object.fromEntries(
    Object.entries(tools).map(([tool, change]) => {
      const own = references.filter((each) => each.tool === tool && each.kind === 'defaults')
      return [tool, own.length === 0 ? change : { ...change, hiddenDefaults: own.map(({ argument }) => argument) }]
    })
  )
