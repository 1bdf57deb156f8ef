// The process: arguments, environment, exit code. The only file besides the configuration's that knows process.env.

import { readFileSync } from 'node:fs'
import { runCheck } from './cli/check.ts'
import { runImport } from './cli/import.ts'
import { runQuickstart } from './cli/quickstart.ts'
import { runSchema } from './cli/schema.ts'
import { runServe } from './cli/serve.ts'
import { UsageError, readArguments } from './cli/arguments.ts'
import { help } from './cli/help.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const io = { env: process.env, stdout: process.stdout, stderr: process.stderr }

async function run(): Promise<number> {
  const given = readArguments(process.argv.slice(2))
  switch (given.command) {
    case 'serve':
      return await runServe({ ...given, ...io, version })
    case 'quickstart':
      return await runQuickstart({ ...given, ...io, version })
    case 'check':
      return await runCheck({ file: given.config, ...io })
    case 'import':
      return await runImport({ file: given.file, ...io })
    case 'schema':
      return await runSchema(io)
    case 'version':
      process.stdout.write(`${version}\n`)
      return 0
    case 'help':
      process.stdout.write(help(given.topic))
      return 0
  }
}

try {
  process.exitCode = await run()
} catch (error) {
  const words =
    error instanceof UsageError
      ? `${error.message}\nRun "gatehouse help" for all commands.`
      : error instanceof Error
        ? error.message
        : String(error)
  process.stderr.write(`gatehouse: ${words}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
