// Finds the secrets among headers, variables and arguments of a definition, and the forms in which a server may repeat
// them.

// Of `auth`, not AUTHOR or AUTHORITY; of `sign`, not DESIGN, ASSIGNEE, SIGNAL, SIGNUP or SIGNIN; of `pin`, `otp` and
// `seed`, not PING, OPINION or SEEDS.
const secretName = new RegExp(
  ['key|token|secret|pass|pwd|phrase|mnemonic|cred|cookie|private|dsn|webhook|session|licen[cs]e']
    .concat(
      'auth(?!or(?!i[sz]))',
      '(?<!as|de|con)sign(?!al|up|in(?!g))',
      '(?<![a-z])(?:pin|pw|t?otp)(?![a-z])',
      'seed(?![a-z])'
    )
    .join('|'),
  'i'
)
/** Names of values that are places, not secrets: `KEY_FILE`, `SESSION_DIR`. But the path of a webhook is a secret. */
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

const isNamedSecret = (name: string): boolean => secretName.test(name) && !placeName.test(name)

/** Random letters and digits: no word, version or size is made so. */
function isRandom(piece: string): boolean {
  const changes = (piece.match(/\p{L}(?=\d)|\d(?=\p{L})/gu) ?? []).length
  if (changes > 0 && piece.length >= (changes > 2 ? 8 : changes === 2 ? 12 : 20)) return true
  if (/^\d{9,}$/.test(piece)) return true
  return /^[a-z]{20,}$/i.test(piece) && (piece.match(/[aeiouy]/gi) ?? []).length < piece.length * 0.3
}

/** Whether a text has the form of a secret: random pieces (token, UUID), or a mix of letters, digits and signs. */
function looksSecret(text: string): boolean {
  const pieces = text.split(/[^\p{L}\d]+/u)
  const mixed = pieces.filter((piece) => piece.length <= 20 && /\p{L}+\d+\p{L}|\d+\p{L}+\d/u.test(piece))
  return (
    pieces.some(isRandom) ||
    (mixed.length >= 2 && mixed.join('').length >= 12) ||
    (text.length % 4 === 0 && /^(?=.*[a-z])(?=.*[A-Z])[\w+/-]{6,}={1,2}$/.test(text)) ||
    (text.length >= 8 && /[!#$^*]/.test(text) && /\p{L}/u.test(text) && /\d/.test(text))
  )
}

/** Without the brackets, quotes and stops around it: by hand, as an expression takes quadratic time for many stops. */
function withoutMarks(word: string): string {
  let [start, end] = [0, word.length]
  while (start < end && '("\'`<[{'.includes(word.charAt(start))) start++
  while (end > start && ')"\'`>]},;:.?'.includes(word.charAt(end - 1))) end--
  return word.slice(start, end)
}

/** Within a text, such as a connection string or JSON: `Password=…`, `"token": "…"`, `?sig=…`. */
const assignments = /([\w.-]{1,64})["']?\s{0,4}[=:]\s{0,4}["']?([^\s;&,"')\]}]+)/g
const scheme = /^(?:bearer|basic|bot|digest|hmac|key|api-?key|token|ssws)\s+(\S+)$/i

/**
 * Finds the secrets in a value: the whole value if its name says so, else the parts that have the form of a secret, but
 * never a single word of a sentence. @returns also the forms in which a server may repeat it: the token after its
 * scheme, the password of a URL
 */
export function secretForms(name: string, value: string): string[] {
  const isKey = /-----BEGIN [A-Z ]*PRIVATE KEY/.test(value)
  const isWhole = isKey || isNamedSecret(name)
  if (!isWhole && isPlain(value)) return []
  const assigned = isKey
    ? []
    : [...value.matchAll(assignments)].flatMap(([, key = '', given = '']) =>
        (/cookie/i.test(name) || isNamedSecret(key)) && !/^(?:true|false|null|\d*)$/.test(given) ? [given] : []
      )
  const words = value.split(/\s+/).map(withoutMarks)
  const parts = [
    ...assigned,
    scheme.exec(value)?.[1] ?? '',
    ...urlCredentials(value, /proxy$/i.test(name)),
    ...words.filter((word) => !isPlain(word) && looksSecret(word))
  ].filter((part) => part !== '')
  return isWhole || (parts.length > 0 && !/\s/.test(value)) ? [value, ...parts] : parts
}

/** Whether a value is a URL or a path. */
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
    return secretForms(/^-[\w-]+$/.test(before) ? before : '', arg)
  })
}

const assignment = /^([\w.-]+)=([^]*)$/
/** Of what is assigned within an assignment. */
const maxAssignments = 4

function assignedSecrets(text: string, depth = maxAssignments): string[] {
  const [, name, value = ''] = assignment.exec(text) ?? []
  if (name === undefined || depth === 0) return []
  return [...secretForms(name, value), ...assignedSecrets(value, depth - 1)]
}

/**
 * @param isProxy it is that of a proxy, which may be written without `http://`
 * @returns the password in a URL, with its user, and as HTTP sends both (RFC 7617); where there is none, a user of a
 * proxy, or one that looks like a token; else none
 */
export function urlCredentials(value: string, isProxy = false): string[] {
  const url = isProxy && !value.includes('://') ? `http://${value}` : value
  if (!URL.canParse(url)) return []
  const { username, password } = new URL(url)
  const [user, plain] = [decoded(username), decoded(password)]
  // Other users without a password are names, such as that of an organisation.
  if (password === '' && (user === '' || !(isProxy || looksSecret(user)))) return []
  const parts = password === '' ? [username, user] : [password, plain, `${username}:${password}`, `${user}:${plain}`]
  return [...new Set(parts), Buffer.from(`${user}:${plain}`).toString('base64')]
}

/** As it is where its percent-encoding is none. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** As it stands, within JSON in a text, and within a URL. */
export const writtenForms = (form: string): string[] => [
  form,
  JSON.stringify(form).slice(1, -1),
  encodeURIComponent(form.toWellFormed())
]
