// The process: arguments, environment, exit code. The only file that reads process.env.

import { readFileSync } from 'node:fs'
import { namedCommand, readArguments } from './cli/arguments.ts'
import { UsageError } from './cli/commands/command.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const { env, stdout, stderr } = process
const io = { env, stdin: process.stdin, stdout, stderr, version }

// A file that reaches a limit of size fails its write, as a full disk does, and does not end the process.
process.on('SIGXFSZ', () => {})

async function run(): Promise<number> {
  const asked = readArguments(process.argv.slice(2))
  if (asked.command !== undefined) return await asked.command.run(asked, io)
  stdout.write(asked.text)
  return 0
}

function whereToRead(): string {
  const command = namedCommand(process.argv.slice(2))
  return command === undefined
    ? 'Run "gatehouse help" for all commands.'
    : `Run "gatehouse help ${command}" for its options and examples.`
}

try {
  process.exitCode = await run()
} catch (error) {
  const words =
    error instanceof UsageError
      ? `${error.message}\n${whereToRead()}`
      : error instanceof Error
        ? error.message
        : String(error)
  process.stderr.write(`gatehouse: ${words}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
