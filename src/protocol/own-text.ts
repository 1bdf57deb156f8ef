// Parts of a text that outlive it. The engine makes a part of more than a few characters by pointing into the whole: a
// name of 200 characters would keep the megabytes that it was cut from.

/** @returns what stands between two positions, which keeps nothing of the rest; half of a surrogate pair is U+FFFD */
export const ownPart = (text: string, start: number, end: number): string =>
  Buffer.from(text.slice(start, end)).toString()

/** @returns the first characters at most, which keep nothing of the rest */
export const firstOf = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : ownPart(text, 0, maxChars)
