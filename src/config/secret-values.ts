// Which headers and variables of a definition are secrets, and in what forms a server may repeat one.

// Of `auth`, not AUTHOR or AUTHORITY; of `sign`, not DESIGN, ASSIGNEE, SIGNAL, SIGNUP or SIGNIN; of `pin`, `otp` and
// `seed`, not PING, OPINION or SEEDS.
const secretName = new RegExp(
  ['key|token|secret|pass|pwd|phrase|mnemonic|cred|cookie|private|dsn|webhook|session|licen[cs]e']
    .concat(
      'auth(?!or(?!i[sz]))',
      '(?<!as|de|con)sign(?!al|up|in(?!g))',
      '(?<![a-z])(?:pin|t?otp)(?![a-z])',
      'seed(?![a-z])'
    )
    .join('|'),
  'i'
)
/** Says where a secret is, or something else, and is none: `KEY_FILE`, `SESSION_DIR`. The path of a webhook is one. */
const placeName = /^(?!.*webhook).*(?:dir|directory|file|folder|path)$/i
// Results are full of addresses, paths, regions and names: masking these would break every link to the server's own
// site.
const plainValues: readonly RegExp[] = [
  // An absolute URL without user, query and fragment.
  /^[a-z][a-z0-9+.-]*:\/\/[^@?#\s]+$/i,
  // A path.
  /^(?:~|\.{1,2}|[a-z]:)?(?:[\\/][\w. -]+)+[\\/]?$/i,
  // A package of npm, with a scope or a version.
  /^(?:@[a-z\d._-]{1,64}\/[a-z\d._-]{1,64}|[a-z\d._-]{1,64}(?=@))(?:@(?:latest|next|[~^]?\d+(?:\.[\da-z-]+)*))?$/,
  // A mail address.
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
  // Words and short numbers: `production`, `eu-central-1`, `db.example.com:5432`; not with more than eight digits.
  /^(?!(?:\D*\d){9})(?:\p{L}+|\d{1,4})(?:[ ._:,/-](?:\p{L}+|\d{1,4}))*$/u
]

const isPlain = (value: string): boolean => plainValues.some((plain) => plain.test(value))

export const isSecret = (name: string, value: string): boolean =>
  !isPlain(value) || (secretName.test(name) && !placeName.test(name))

/** Where something is: a URL or a path, which many values name that are given by reference. */
export const isPlace = (value: string): boolean => plainValues.slice(0, 2).some((plain) => plain.test(value))

/**
 * The values of arguments that are secrets: of `--token=VALUE`, `--token VALUE`, `-e TOKEN=VALUE` and
 * `--env=TOKEN=VALUE`, and whatever is plainly no word, path, address or package.
 */
export function secretArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, at) => {
    if (assignment.test(arg)) {
      const values = assignedSecrets(arg)
      return values.length > 0 ? [arg, ...values] : []
    }
    // A flag, as the one before may be.
    if (/^-[\w-]*$/.test(arg)) return []
    const before = args[at - 1] ?? ''
    return isSecret(/^-[\w-]+$/.test(before) ? before : '', arg) ? formsOf(arg) : []
  })
}

const assignment = /^([\w.-]+)=([^]*)$/
/** Of what is assigned within an assignment. */
const maxAssignments = 4

function assignedSecrets(text: string, depth = maxAssignments): string[] {
  const [, name, value = ''] = assignment.exec(text) ?? []
  if (name === undefined || depth === 0) return []
  return [...(isSecret(name, value) ? formsOf(value) : []), ...assignedSecrets(value, depth - 1)]
}

/** What of a header or variable may come back: the whole, the token after its scheme, the password of a URL. */
export const formsOf = (value: string): string[] => [value, ...value.split(/\s+/), passwordOf(value)]

export const passwordOf = (value: string): string => (URL.canParse(value) ? new URL(value).password : '')

/** As it stands, within JSON in a text, and within a URL. */
export const writtenForms = (form: string): string[] => [
  form,
  JSON.stringify(form).slice(1, -1),
  encodeURIComponent(form.toWellFormed())
]
