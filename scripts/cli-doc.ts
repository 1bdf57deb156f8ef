// docs/cli.md: every command, from the tables of src/cli/commands.

import { help } from '../src/cli/arguments.ts'
import { catalogue } from '../src/hosts/doctor/catalogue.ts'
import { hopNames } from '../src/hosts/doctor/misconfiguration.ts'
import { commandGroups } from '../src/cli/commands/commands.ts'

export function doctorMarkdown(): string {
  const rows = Object.entries(catalogue).map(
    ([code, { hop, side, problem, remedy }]) => `| \`${code}\` | ${hopNames[hop]} | ${side} | ${problem} | ${remedy} |`
  )
  return `# Doctor

*Written by \`npm run docs\` from the table in src/hosts/doctor/catalogue.ts; do not edit.*

\`gatehouse doctor --url URL\` goes the way of a host to an endpoint, hop by hop, and stops at the first one that fails:

\`\`\`
gatehouse doctor --url https://mcp.example.com/t/acme/mcp --login            # registers, and signs in with a browser
gatehouse doctor --url https://mcp.example.com/t/acme/mcp --device           # the same where there is no browser
gatehouse doctor --url https://mcp.example.com/t/acme/mcp --key-file ci.key  # with an API key, or a token
\`\`\`

It runs anywhere, and needs nothing but the URL: run it where the host runs, as another machine may take another way. Without \`--login\`, \`--device\`, \`--token\` or \`--key-file\` it goes as far as
nobody has to sign in. It can only see what a host sees; why the gateway refuses a token is in its log ([logging.md](logging.md)). \`{name}\` stands for what is found.
Each of these is made for real in test/cli/doctor.test.ts, and found.

| code | hop | who has to act | what is wrong | what to do |
|---|---|---|---|---|
${rows.join('\n')}
`
}

export function cliMarkdown(): string {
  const parts = commandGroups.map(({ heading, commands }) => {
    const pages = commands.map(
      ({ name }) => `### gatehouse ${name}\n\n\`\`\`text\n${help(name.split(' ')).trimEnd()}\n\`\`\`\n`
    )
    return `## ${heading.replace(/:$/, '').replace(/ \(docs\/(.*)\)/, '')}\n\n${pages.join('\n')}`
  })
  return `# Command line

*Written by \`npm run docs\` from the tables in src/cli/commands; do not edit.*

\`gatehouse help COMMAND\` prints each of these pages. A misspelt command or option is answered by what was probably meant. The exit code is 0 where all is well,
1 where something is wrong or was refused, and 2 for a mistake in the command line.

In a clone \`npm run gatehouse -- COMMAND\` stands for \`gatehouse COMMAND\`.

${parts.join('\n')}`
}
