// The presets by the name that the configuration calls them.

import { auth0 } from './auth0.ts'
import { authentik } from './authentik.ts'
import { cognito } from './cognito.ts'
import { entra } from './entra.ts'
import { generic } from './generic.ts'
import { google } from './google.ts'
import { keycloak } from './keycloak.ts'
import { okta } from './okta.ts'
import type { ProviderPreset } from './preset.ts'

export const providerPresets = { entra, okta, auth0, keycloak, google, cognito, authentik, generic } satisfies Record<
  string,
  ProviderPreset
>

export type ProviderName = keyof typeof providerPresets

export const providerNames = Object.keys(providerPresets) as ProviderName[]

export const isProviderName = (name: unknown): name is ProviderName =>
  typeof name === 'string' && Object.hasOwn(providerPresets, name)

/** @returns which product an issuer is of, as far as its URL says it; `generic` where it does not */
export function productOf(issuer: string): ProviderName {
  const isOf = ({ issuer: { pattern }, behindLogin }: ProviderPreset): boolean =>
    new RegExp(behindLogin.issuer ?? pattern).test(issuer)
  return providerNames.find((name) => isOf(providerPresets[name])) ?? 'generic'
}

/** @returns the preset whose product alone has issuers at this origin, where this is none of them */
export const presetOfWrongIssuer = (issuer: string): ProviderPreset | undefined =>
  Object.values<ProviderPreset>(providerPresets).find(
    ({ issuer: { origin, pattern }, behindLogin }) =>
      origin !== undefined && new RegExp(origin).test(issuer) && !new RegExp(behindLogin.issuer ?? pattern).test(issuer)
  )

/** @returns the steps, with the URLs of a tenant in place of their placeholders */
export const stepsFor = (steps: readonly string[], urls: Readonly<Record<string, string>>): string[] =>
  steps.map((step) => step.replaceAll(/\{(\w+)\}/g, (all, name: string) => urls[name] ?? all))
