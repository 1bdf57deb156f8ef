// The schemas that the suite looks at: what has to survive a tools/list, and what has to survive an elicitation.

import type { ElicitRequestFormParams, Tool } from '@modelcontextprotocol/sdk/types.js'

type Form = ElicitRequestFormParams['requestedSchema']

export const nothing: Tool['inputSchema'] = { type: 'object' }

/** One required argument, a string. */
export const oneString = (name: string, description: string): Tool['inputSchema'] => ({
  type: 'object',
  properties: { [name]: { type: 'string', description } },
  required: [name]
})

/** Every kind of keyword of JSON Schema 2020-12 that something on the way might drop (scenario json-schema-2020-12). */
export const manyKeywords: Tool['inputSchema'] = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } }
    }
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' }
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] }, // eslint-disable-line unicorn/no-thenable
  else: { required: ['email'] },
  additionalProperties: false
}

export const contact: Form = {
  type: 'object',
  properties: {
    username: { type: 'string', description: 'How to address the user' },
    email: { type: 'string', description: 'Where to write to' }
  },
  required: ['username', 'email']
}

/** A default of each primitive type (SEP-1034). */
export const defaults: Form = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true }
  }
}

const titled = (noun: string): Array<{ const: string; title: string }> =>
  ['First', 'Second', 'Third'].map((title, index) => ({ const: `value${index + 1}`, title: `${title} ${noun}` }))

/** The five ways to write a choice (SEP-1330). */
export const choices: Form = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three']
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } }
  }
}
