// Texts as values of headers and back (2026-07-28 basic/transports/streamable-http "Value Encoding").

const prefix = '=?base64?'
const suffix = '?='
const isSentinel = (text: string): boolean =>
  text.startsWith(prefix) && text.endsWith(suffix) && text.length >= prefix.length + suffix.length

/** Texts that a header carries unencoded. Tabs are encoded, because some proxies turn them into spaces. */
const plain = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/
/** RFC 9110 section 5.5, without obs-text. */
const visible = /^[\t\x20-\x7e]*$/

/** The value of a header for a text: unchanged where possible, else `=?base64?...?=` ("Value Encoding"). */
export function encodeHeader(text: string): string {
  return plain.test(text) && !isSentinel(text) ? text : prefix + btoa(binary(new TextEncoder().encode(text))) + suffix
}

/** @returns the text that a header value encodes; undefined where the value is malformed */
export function decodeHeader(value: string): string | undefined {
  if (!visible.test(value)) return undefined
  if (!isSentinel(value)) return value
  const base64 = value.slice(prefix.length, -suffix.length)
  try {
    const bytes = atob(base64)
    // `atob` accepts white space, missing padding and stray last bits, which other parsers on the way may not.
    if (btoa(bytes) !== base64) return undefined
    return utf8.decode(Uint8Array.from(bytes, (unit) => unit.charCodeAt(0)))
  } catch {
    return undefined // Not base64 or not UTF-8: the sender gets an error.
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** In a loop: spreading a long text over the arguments of one call overflows the stack. */
function binary(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}
