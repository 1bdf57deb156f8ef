// The error codes of JSON-RPC 2.0 and of MCP. Only this file and errors.ts contain such numbers.

export const rpcCodes = {
  // JSON-RPC 2.0 section 5.1.
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Up to 2025-11-25 (server/resources "Error Handling"); 2026-07-28 answers invalidParams instead. */
  resourceNotFound: -32002,
  /** 2025-11-25 client/elicitation "URL Elicitation Required Error". */
  urlElicitationRequired: -32042,
  // 2026-07-28 basic/index "Error Codes".
  /** A header does not repeat what the body says. */
  headerMismatch: -32020,
  /** The request needs a capability that it does not declare. */
  missingCapability: -32021,
  /** The request names a revision that the server does not speak. */
  unsupportedRevision: -32022
} as const

/** Codes that only servers of 2026-07-28 and later send. */
export const modernOnlyCodes: ReadonlySet<number> = new Set([
  rpcCodes.headerMismatch,
  rpcCodes.missingCapability,
  rpcCodes.unsupportedRevision
])

/** Is the code in the range that 2026-07-28 reserves for the specification (basic/index "Error Codes")? */
export const isReservedForMcp = (code: number): boolean => code <= -32020 && code >= -32099

/** Is this a code that JSON-RPC or MCP defines, or one reserved for MCP? */
export function isSpecifiedCode(code: unknown): boolean {
  if (typeof code !== 'number') return false
  return isReservedForMcp(code) || (code <= -32600 && code >= -32603) || code === rpcCodes.parseError
}
