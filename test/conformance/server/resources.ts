// The resources of the reference server: two fixed ones, one that can be watched, and a template.

import type { ReadResourceResult, Resource, ResourceTemplate } from '@modelcontextprotocol/sdk/types.js'
import { png } from './samples.ts'

export const resources: readonly Resource[] = [
  { uri: 'test://static-text', name: 'static-text', description: 'A text that never changes', mimeType: 'text/plain' },
  {
    uri: 'test://static-binary',
    name: 'static-binary',
    description: 'An image that never changes',
    mimeType: 'image/png'
  },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text to subscribe to',
    mimeType: 'text/plain'
  }
]

export const templates: readonly ResourceTemplate[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'The data of an id',
    mimeType: 'application/json'
  }
]

/** @returns undefined where there is no such resource */
export function contentsOf(uri: string): ReadResourceResult['contents'] | undefined {
  switch (uri) {
    case 'test://static-text':
      return [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }]
    case 'test://static-binary':
      return [{ uri, mimeType: 'image/png', blob: png }]
    case 'test://watched-resource':
      return [{ uri, mimeType: 'text/plain', text: 'This is the content of the watched resource.' }]
  }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined) return undefined
  return [
    { uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
  ]
}
