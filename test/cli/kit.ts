// A command line in this process: what it prints, and how it exits.

import { Readable } from 'node:stream'
import { readArguments } from '../../src/cli/arguments.ts'
import { UsageError, type Io } from '../../src/cli/commands/command.ts'

export interface Printed {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** As main.ts runs it: a mistake in the command line exits with 2. @param heard what comes at standard error. @param isTTY whether standard output is a terminal */
export async function cli(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin = '',
  heard: (text: string) => void = () => {},
  isTTY = false
): Promise<Printed> {
  const [out, err]: [string[], string[]] = [[], []]
  const stdout = { isTTY, write: (text: string) => out.push(text) }
  const stderr = { write: (text: string) => (heard(text), err.push(text)) }
  const io = { env, version: '0.0.0-test', stdin: Readable.from([stdin]), stdout, stderr } as unknown as Io
  let code: number
  try {
    const asked = readArguments(argv)
    if (asked.command === undefined) out.push(asked.text)
    code = asked.command === undefined ? 0 : await asked.command.run(asked, io)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    err.push(error.message)
    code = 2
  }
  return { code, out: out.join(''), err: err.join('') }
}
