// What the schema of the configuration is made of.

import type { TProperties, TSchema, TSchemaOptions } from 'typebox'
import { Type } from './type.ts'

export const MiB = 1024 * 1024
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs

/** May be absent in a file, and never is after checkShape, which puts the default in its place. */
export const defaulted = <Schema extends TSchema>(schema: Schema): Schema => Type.Optional(schema)

export const closedObject = <Properties extends TProperties>(properties: Properties, options?: TSchemaOptions) =>
  Type.Object(properties, { additionalProperties: false, ...options })

export const integer = (minimum: number, maximum: number, byDefault: number, description: string) =>
  defaulted(Type.Integer({ minimum, maximum, default: byDefault, description }))

export const formatted = (format: string, description: string) => Type.String({ format, description })

export const choice = <const Value extends string>(values: readonly Value[], byDefault: Value, description: string) =>
  defaulted(Type.Enum([...values], { default: byDefault, description }))

export const list = <Item extends TSchema>(items: Item, description: string) =>
  defaulted(Type.Array(items, { default: [], description }))

/** A map whose keys have this pattern or format. */
export const record = <Value extends TSchema>(names: TSchemaOptions, value: Value, options: TSchemaOptions) =>
  Type.Record(Type.String(), value, { propertyNames: Type.String(names), ...options })

const maxPatternLength = 512
/** In one list of a rule or tag. */
const maxPatterns = 1_000

export const patterns = (description: string) =>
  Type.Array(Type.String({ maxLength: maxPatternLength }), { minItems: 1, maxItems: maxPatterns, description })

const scope = Type.String({
  // RFC 6749 appendix A.4
  pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$',
  patternErrorMessage: 'must be one scope: visible characters without spaces, quotes and backslashes'
})

export const scopes = (description: string) => list(scope, description)

export const scopesOrDefault = (byDefault: readonly string[], description: string) =>
  defaulted(Type.Array(scope, { minItems: 1, default: [...byDefault], description }))

export const requiredScopes = (description: string) =>
  Type.Optional(
    Type.Union(
      [
        closedObject(
          { scopes: Type.Array(scope, { minItems: 1, maxItems: 32, description: 'All of these.' }) },
          { title: 'requires' }
        )
      ],
      {
        description
      }
    )
  )
