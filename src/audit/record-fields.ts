// What other systems want to know of a record beside its text.

export interface RecordFields {
  /** RFC 3339. */
  readonly time: string
  readonly kind: string
  /** Whose chain it is in. */
  readonly tenant: string
}

/** @param line a record of ours */
export function readRecord(line: string): RecordFields {
  const { time, kind, chain } = JSON.parse(line) as Readonly<Record<string, string>>
  return { time: time ?? '-', kind: kind ?? '-', tenant: chain?.slice(0, chain.lastIndexOf('/')) ?? '-' }
}
