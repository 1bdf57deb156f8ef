// The compiled form of policies: rules about who may use which tools, prompts and resources.

import type { PolicyTest } from '../schema/policy.ts'

/** The principals of a rule: those that have one of the values of each member that is given. */
export type PolicyWho = Readonly<
  Partial<Record<'issuers' | 'subjects' | 'clients' | 'keys' | 'scopes' | 'groups' | 'roles', readonly string[]>>
>

/** The routes of a rule: those that have one of the values of each member that is given. */
export interface PolicyWhat {
  readonly upstreams?: readonly string[]
  /** The upstream's own names; URIs of resources, and URI templates. */
  readonly names?: readonly string[]
  readonly kinds?: ReadonlyArray<'tool' | 'prompt' | 'resource' | 'template'>
  readonly tags?: readonly string[]
}

export interface PolicyRule {
  readonly name: string
  readonly effect: 'allow' | 'deny' | 'requires'
  readonly who: PolicyWho
  readonly what: PolicyWhat
  /** The scopes of `requires`. */
  readonly scopes: readonly string[]
  /** The condition in CEL; not given: always. */
  readonly when?: string | undefined
}

export interface PolicyConfig {
  /** The decision for routes that no rule allows or denies. */
  readonly default: 'allow' | 'deny'
  readonly rules: readonly PolicyRule[]
  /** Tests of the policy; they do not influence decisions. */
  readonly tests?: readonly PolicyTest[] | undefined
}

/** The operator's tags of the tools, prompts and resources of an upstream. */
export interface UpstreamTags {
  /** Tag -> patterns of the upstream's own names. */
  readonly tags: Readonly<Record<string, readonly string[]>>
  /** Whether annotations of the upstream's tools count as tags, too. */
  readonly trustAnnotations: boolean
}

/** @param reserved places of a tenant; what stands in one is reserved with it. @param place such as `policy/rules` */
export const isReserved = (reserved: readonly string[] | undefined, place: string): boolean =>
  reserved?.some((each) => place === each || place.startsWith(`${each}/`)) === true

/** Members of `ToolAnnotations`, and the tags that they are. */
export const hintTags = [
  ['readOnlyHint', 'readOnly'],
  ['destructiveHint', 'destructive'],
  ['idempotentHint', 'idempotent'],
  ['openWorldHint', 'openWorld']
] as const
