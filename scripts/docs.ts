// `node scripts/docs.ts [--check]`: writes the documents that are made from the code, or says which of them is out of
// date.

import { readFile, writeFile } from 'node:fs/promises'

import { adminMarkdown } from './admin-doc.ts'
import { cliMarkdown, doctorMarkdown } from './cli-doc.ts'
import { configMarkdown } from './config-doc.ts'
import { architectureMarkdown } from './files-doc.ts'
import { errorTable, type ErrorCode } from '../src/protocol/error-table.ts'
import { rpcCodeOf } from '../src/protocol/messages.ts'
import { conformanceMarkdown } from '../test/conformance/figures.ts'
import { limitsMarkdown } from './limits.ts'
import { metricsMarkdown } from './metrics-doc.ts'
import { providerPages } from './providers-doc.ts'

function errorsMarkdown(): string {
  const rows = Object.entries(errorTable).map(
    ([code, row]) =>
      `| \`${code}\` | ${row.status} | ${rpcCodeOf(code as ErrorCode)} | ${row.retry ? 'yes' : 'no'} | ${row.meaning.replaceAll('|', '\\|')} |`
  )
  return `# Errors

*Written by \`npm run docs\` from the table in src/protocol/error-table.ts; do not edit.*

Every error that the gateway itself makes is a JSON-RPC error with \`error.data.reason\` set to one of these codes,
and \`error.data.requestId\`, which the header \`X-Request-Id\` repeats and the log explains ([logging.md](logging.md)). The HTTP status is
the one given here, unless a part of the response was sent already. "Retry" says whether the same request may succeed later without
anybody changing anything. An error of an upstream server is passed on without \`reason\`: its code, message and \`data\` are its own, and \`data\` gets
a \`requestId\` beside what it has. Not where \`data\` is no object or has one already, of errors -32020 to -32022, whose \`data\` the specification defines, nor of
-32602 and -32002 with \`data\`: official clients know a resource that is not there by \`data\` being \`{ uri }\` alone. Of these the header alone has it.
A refusal that comes before the body is parsed has \`"id": null\`; one of a body that is no JSON-RPC request has no id.

| reason | HTTP status | JSON-RPC code | retry | meaning |
|---|---|---|---|---|
${rows.join('\n')}
`
}

const documents = {
  'docs/admin-api.md': adminMarkdown(),
  'docs/architecture.md': architectureMarkdown(),
  'docs/cli.md': cliMarkdown(),
  'docs/doctor.md': doctorMarkdown(),
  'docs/config.md': configMarkdown(),
  'docs/errors.md': errorsMarkdown(),
  'docs/conformance.md': conformanceMarkdown(),
  'docs/limits.md': limitsMarkdown(),
  'docs/metrics.md': metricsMarkdown(),
  ...providerPages()
}

for (const [name, text] of Object.entries(documents)) {
  const file = new URL(`../${name}`, import.meta.url)
  // A file that is not there yet is out of date like any other.
  const now = await readFile(file, 'utf8').catch(() => undefined)
  if (now === text) continue
  if (process.argv.includes('--check')) {
    console.error(`${name} is out of date. Run: npm run docs`)
    process.exitCode = 1
  } else {
    await writeFile(file, text)
    console.log(`${name} written`)
  }
}
