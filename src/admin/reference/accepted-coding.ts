// Accept-Encoding of a request to the admin listener.

/**
 * Whether an answer may come in this coding: where the header names it, or `*`, and not with the weight 0 (RFC 9110
 * sections 12.4.2 and 12.5.3).
 * @param coding in lower case
 * @param accepted the header; undefined: there is none, and then nothing is compressed
 */
export function takesCoding(coding: string, accepted = ''): boolean {
  const all = accepted
    .toLowerCase()
    .split(',')
    .map((each) => each.split(';').map((part) => part.trim()))
  const [, ...parameters] = all.find(([name]) => name === coding) ?? all.find(([name]) => name === '*') ?? ['', 'q=0']
  return !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
}
