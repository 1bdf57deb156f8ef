// `schema`: the JSON Schema of the configuration, for editors.

import { configJsonSchema } from '../config/document.ts'
import type { Output } from './check.ts'

/** @returns the exit code, always 0 */
export async function runSchema({ stdout }: { readonly stdout: Output }): Promise<number> {
  stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
  return 0
}
