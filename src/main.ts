// The process: arguments, environment, exit code. The only file besides the configuration's that knows process.env.

import { readFileSync } from 'node:fs'
import { help, listenArguments, readArguments, UsageError } from './cli/arguments.ts'
import { runAdminKey } from './cli/admin-key.ts'
import { runAuditExport, runAuditVerify } from './cli/audit.ts'
import { runCheck } from './cli/check.ts'
import { configJsonSchema, runImport } from './cli/offline.ts'
import { runExplain, runPolicyTests } from './cli/policy.ts'
import { runQuickstart } from './cli/quickstart.ts'
import { runServe } from './cli/serve.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const { env, stdout, stderr } = process
const io = { env, stdout, stderr, version }

// A file that reaches a limit of size fails its write, as a full disk does, and does not end the process.
process.on('SIGXFSZ', () => {})

async function run(): Promise<number> {
  const { command, options, operand } = readArguments(process.argv.slice(2))
  const { config, 'mcp-json': mcpJson } = options
  switch (command) {
    case 'serve': {
      const file = config ?? mcpJson
      if (file === undefined || (config !== undefined && mcpJson !== undefined))
        throw new UsageError('serve needs exactly one of --config FILE and --mcp-json FILE.')
      return await runServe({ ...io, ...listenArguments(options), file, isMcpJson: config === undefined })
    }
    case 'quickstart':
      return await runQuickstart({ ...io, ...listenArguments(options) })
    case 'check': {
      const file = config ?? operand
      if (file === undefined) throw new UsageError('check needs --config FILE.')
      return await runCheck(file, options['connect'] !== undefined, io)
    }
    case 'explain':
      return await runExplain(options, io)
    case 'policy test':
      if (operand === undefined) throw new UsageError('policy test needs a FILE.')
      return await runPolicyTests(operand, io)
    case 'admin-key new':
      return runAdminKey(options, stdout, stderr)
    case 'audit export':
      return await runAuditExport(options, io)
    case 'audit verify':
      if (operand === undefined) throw new UsageError('audit verify needs a FILE, or - for standard input.')
      return await runAuditVerify(operand, options['key'], { ...io, stdin: process.stdin })
    case 'import':
      if (operand === undefined) throw new UsageError('import needs a FILE: an mcp.json or claude_desktop_config.json.')
      return await runImport(operand, stdout, stderr)
    case 'schema':
      stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
      return 0
    case 'version':
      stdout.write(`${version}\n`)
      return 0
    case 'help':
      stdout.write(help(operand))
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
