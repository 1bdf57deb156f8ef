// Which headers and variables of a definition are secrets, and in what forms a server may repeat one.

const secretName = /key|token|secret|pass|pwd|phrase|auth|cred|cookie|private|sign|dsn|webhook|session/i
// Results are full of addresses, paths, regions and names: masking these would break every link to the server's own
// site.
const plainValues: readonly RegExp[] = [
  // An absolute URL without user, query and fragment.
  /^[a-z][a-z0-9+.-]*:\/\/[^@?#\s]+$/i,
  // A path.
  /^(?:~|\.{1,2}|[a-z]:)?(?:[\\/][\w. -]+)+[\\/]?$/i,
  // A mail address.
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
  // Words and short numbers: `production`, `eu-central-1`, `db.example.com:5432`; not with more than eight digits.
  /^(?!(?:\D*\d){9})(?:\p{L}+|\d{1,4})(?:[ ._:,/-](?:\p{L}+|\d{1,4}))*$/u
]

export const isSecret = (name: string, value: string): boolean =>
  secretName.test(name) || !plainValues.some((plain) => plain.test(value))

/** What of a header or variable may come back: the whole, the token after its scheme, the password of a URL. */
export const formsOf = (value: string): string[] => [value, ...value.split(/\s+/), passwordOf(value)]

export const passwordOf = (value: string): string => (URL.canParse(value) ? new URL(value).password : '')

/** As it stands, within JSON in a text, and within a URL. */
export const writtenForms = (form: string): string[] => [
  form,
  JSON.stringify(form).slice(1, -1),
  encodeURIComponent(form.toWellFormed())
]
