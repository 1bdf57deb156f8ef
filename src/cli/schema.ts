// `schema`: the JSON Schema of the configuration, for editors.

import { ConfigSchema } from '../config/schema.ts'
import type { Output } from './check.ts'

/** 2020-12. The names of formats and the keyword `refused` are the gateway's own, which validators ignore. */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  // The round trip through JSON removes the symbols that the library keeps on its objects.
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...(JSON.parse(JSON.stringify(ConfigSchema)) as Record<string, unknown>)
  }
}

/** @returns the exit code, always 0 */
export async function runSchema({ stdout }: { readonly stdout: Output }): Promise<number> {
  stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
  return 0
}
