// Kill switches: targets that administrators have stopped.

/** What is stopped, by its name. */
export type Kill =
  | { readonly kind: 'tool'; readonly upstream: string; readonly tool: string }
  | { readonly kind: 'upstream'; readonly upstream: string }
  | { readonly kind: 'principal'; readonly issuer: string; readonly subject: string }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'tenant' }

export interface KillInForce {
  readonly kill: Kill
  /** Later names of the stopped upstream or key. Many kills share one set. */
  readonly also: ReadonlySet<string>
}
