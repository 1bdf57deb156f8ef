// Applies the `resources` limits of a tenant to its endpoints.

import type { ToolChange } from '../protocol/translate/change-tool.ts'
import type { Endpoint, Resources } from './snapshot.ts'

const lesser = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : Math.min(one, other ?? one)

/** @returns what replaces members of the endpoint */
export function withinResources(
  { maxTools, maxCatalogBytes, maxResultBytes }: Partial<Endpoint>,
  tools: Readonly<Record<string, ToolChange>> | undefined,
  { catalogTools, catalogBytes, resultBytes }: Resources
): Pick<Endpoint, 'maxTools' | 'maxCatalogBytes' | 'maxResultBytes' | 'tools'> {
  const capped = ({ maxResultBytes, ...change }: ToolChange): ToolChange => ({
    ...change,
    ...(maxResultBytes !== undefined && { maxResultBytes: Math.min(maxResultBytes, resultBytes ?? Infinity) })
  })
  return {
    maxTools: lesser(catalogTools, maxTools),
    maxCatalogBytes: lesser(catalogBytes, maxCatalogBytes),
    maxResultBytes: lesser(resultBytes, maxResultBytes),
    ...(tools && { tools: Object.fromEntries(Object.entries(tools).map(([name, change]) => [name, capped(change)])) })
  }
}
