// What an endpoint offers, in numbers, for whoever configures it.

import { GatewayError, RpcError, type JsonObject, type UpstreamName } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { fetchListing } from '../../upstream/listing/listing.ts'
import type { EndpointContext } from '../call/call.ts'
import type { Catalog, ListName } from '../catalog/catalog.ts'
import { definitionsOf } from '../catalog/client-catalogs.ts'
import type { Listings } from '../catalog/listings.ts'
import type { NameClash, ShortenedName } from '../catalog/public-names.ts'

export interface EndpointReport {
  readonly path: string
  /** The counts for a caller whom no policy restricts. */
  readonly counts: Readonly<Record<ListName, number>>
  /** The tokens of the text of `tools/list`, which hosts give to the model: an estimate, four characters each. */
  readonly toolTokens: number
  /** The part of each upstream in that, where there are several; the largest first. */
  readonly parts: ReadonlyArray<{ readonly upstream: UpstreamName; readonly tools: number; readonly tokens: number }>
  readonly clashes: readonly NameClash[]
  readonly shortened: readonly ShortenedName[]
  /** Upstreams whose lists could not be read, and why. */
  readonly missing: ReadonlyArray<{ readonly upstream: UpstreamName; readonly reason: string }>
}

const charactersPerToken = 4

/** Asks upstreams whose listing is unknown once more, for the reason. Never rejects. */
export async function reportEndpoint(
  context: EndpointContext,
  listings: Pick<Listings, 'peek' | 'connect'>,
  catalog: Catalog
): Promise<EndpointReport> {
  const unknown = definitionsOf(context).filter((definition) => listings.peek(definition) === undefined)
  const missing = await Promise.all(
    unknown.map(async (definition) => {
      const reason = await listings
        .connect(definition)
        .then(async (upstream) => await reasonOfLists(upstream), reasonOf)
      return { upstream: definition.name, reason }
    })
  )
  const { clashes, shortened } = catalog
  const { tools, prompts, resources, templates } = catalog.lists
  return {
    path: context.endpoint.path,
    counts: {
      tools: tools.length,
      prompts: prompts.length,
      resources: resources.length,
      templates: templates.length
    },
    toolTokens: tokensOf(tools),
    parts: partsOf(catalog),
    clashes,
    shortened,
    missing
  }
}

/** Why an upstream that answers has no lists: asked for once more, for as long as it may take. Never rejects. */
const reasonOfLists = async (upstream: Upstream): Promise<string> =>
  await fetchListing(upstream, new AbortController().signal).then(
    () => 'It answers, but its lists could not be read in time.',
    (error: unknown) => (error instanceof RpcError ? reasonOf(error) : 'Its lists could not be read in time.')
  )

const reasonOf = (error: unknown): string =>
  error instanceof GatewayError
    ? error.message
    : error instanceof RpcError
      ? `It answers with an error: ${error.message} (${error.error.code}).`
      : 'It failed.'

const tokensOf = (tools: readonly JsonObject[]): number => Math.ceil(JSON.stringify(tools).length / charactersPerToken)

function partsOf(catalog: Catalog): EndpointReport['parts'] {
  const places = [...catalog.routes('tools').entries()]
  const byUpstream = Map.groupBy(places, ([, { upstream }]) => upstream)
  if (byUpstream.size < 2) return []
  const parts = [...byUpstream].map(([upstream, each]) => {
    const tools = each.map(([at]) => catalog.lists.tools[at] ?? {})
    return { upstream, tools: tools.length, tokens: tokensOf(tools) }
  })
  return parts.toSorted((a, b) => b.tokens - a.tokens)
}
