// Kill switches: what those who run the gateway have stopped at once.

/** What is stopped, by its name. */
export type Kill =
  | { readonly kind: 'tool'; readonly upstream: string; readonly tool: string }
  | { readonly kind: 'upstream'; readonly upstream: string }
  | { readonly kind: 'principal'; readonly issuer: string; readonly subject: string }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'tenant' }

export interface KillInForce {
  readonly kill: Kill
  /** Names, of upstreams or of keys, under which what is stopped has come since. Many kills share one set. */
  readonly also: ReadonlySet<string>
}
