// The definition of a command as data: its help, its shell completion and docs/cli.md are made from it.

/** What a command reads and writes: the process, outside of tests. */
export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly stdin?: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly version: string
}

/** The given options by their long name without dashes: '' for a flag, line feeds between several values. */
export interface Given {
  readonly options: Readonly<Record<string, string | undefined>>
  readonly operands: readonly string[]
}

export interface OptionSpec {
  /** As commander reads it: `--port <port>`, or `--json` for a flag. */
  readonly flags: string
  readonly text: string
  readonly choices?: readonly string[]
  /** It may be given several times. */
  readonly many?: true
}

export interface CommandSpec {
  /** One or two words. */
  readonly name: string
  /** In the list of all commands. */
  readonly summary: string
  /** As commander reads them: `<file>`, `[topic...]`. */
  readonly operands?: string
  readonly options?: readonly OptionSpec[]
  /** What its help says besides. */
  readonly text?: string
  /** Whole command lines. */
  readonly examples: readonly string[]
  /** @returns the exit code. @throws UsageError */
  run(given: Given, io: Io): Promise<number> | number
}

export interface CommandGroup {
  readonly heading: string
  readonly commands: readonly CommandSpec[]
}

/** A mistake in the command line; the message says what to write. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const jsonOption: OptionSpec = { flags: '--json', text: 'print JSON' }

export const configOption: OptionSpec = {
  flags: '--config <file>',
  text: 'the configuration (YAML or JSON; docs/config.md)'
}
