// Parses and checks the command line. Every mistake is reported in one sentence, with what to write instead.

import { parseArgs } from 'node:util'

/** A mistake in the command line; the message says what to write. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface ListenArguments {
  readonly host: string | undefined
  readonly port: number | undefined
  readonly data: string | undefined
}

export type Arguments =
  | ({
      readonly command: 'serve'
      readonly config: string | undefined
      readonly mcpJson: string | undefined
    } & ListenArguments)
  | ({ readonly command: 'quickstart' } & ListenArguments)
  | { readonly command: 'check'; readonly config: string }
  | { readonly command: 'import'; readonly file: string }
  | { readonly command: 'help'; readonly topic: string | undefined }
  | { readonly command: 'schema' | 'version' }

const listening = { host: { type: 'string' }, port: { type: 'string' }, data: { type: 'string' } } as const
const optionsOf = {
  serve: { config: { type: 'string' }, 'mcp-json': { type: 'string' }, ...listening },
  quickstart: listening,
  check: { config: { type: 'string' } },
  import: {},
  schema: {},
  version: {},
  help: {}
} as const

type Command = keyof typeof optionsOf

/** @throws UsageError */
export function readArguments(argv: readonly string[]): Arguments {
  const [first, ...rest] = argv
  if (first === undefined || first === '-h' || first === '--help') return { command: 'help', topic: undefined }
  if (first === '-v' || first === '--version') return { command: 'version' }
  if (!Object.hasOwn(optionsOf, first))
    throw new UsageError(`There is no command "${first}". Commands: ${Object.keys(optionsOf).join(', ')}.`)
  const command = first as Command
  if (rest.includes('--help') || rest.includes('-h')) return { command: 'help', topic: command }
  const { values, positionals } = parse(command, rest)
  switch (command) {
    case 'serve': {
      const { config, 'mcp-json': mcpJson } = values
      if ((config === undefined) === (mcpJson === undefined))
        throw new UsageError('serve needs exactly one of --config FILE and --mcp-json FILE.')
      return { command, config, mcpJson, ...listen(values) }
    }
    case 'quickstart':
      return { command, ...listen(values) }
    case 'check': {
      const config = values['config'] ?? positionals[0]
      if (config === undefined) throw new UsageError('check needs --config FILE.')
      return { command, config }
    }
    case 'import': {
      if (positionals[0] === undefined)
        throw new UsageError('import needs a FILE: an mcp.json or claude_desktop_config.json.')
      return { command, file: positionals[0] }
    }
    case 'help':
      return { command, topic: positionals[0] }
    default:
      return { command }
  }
}

function parse(
  command: Command,
  args: readonly string[]
): { values: Record<string, string | undefined>; positionals: readonly string[] } {
  const takesFile = command === 'import' || command === 'check' || command === 'help'
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: optionsOf[command],
      allowPositionals: takesFile,
      strict: true
    })
    if (positionals.length > 1) throw new UsageError(`${command} takes one file, not ${positionals.length}.`)
    return { values: values as Record<string, string | undefined>, positionals }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const options = Object.keys(optionsOf[command]).map((name) => `--${name}`)
    throw new UsageError(
      `${command}: ${firstSentence(error)} Options: ${options.length === 0 ? 'none' : options.join(', ')}.`
    )
  }
}

function listen({ host, port, data }: Record<string, string | undefined>): ListenArguments {
  if (port === undefined) return { host, port, data }
  const number = Number(port)
  if (!/^\d{1,5}$/.test(port) || number > 65_535)
    throw new UsageError(`--port must be a number from 0 (any free port) to 65535, not "${port}".`)
  return { host, port: number, data }
}

const firstSentence = (error: unknown): string => {
  const [sentence = ''] = (error instanceof Error ? error.message : String(error)).split('. ')
  return sentence.endsWith('.') ? sentence : sentence + '.'
}
