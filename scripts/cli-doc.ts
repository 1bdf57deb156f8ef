// docs/cli.md: every command, from the tables of src/cli/commands.

import { help } from '../src/cli/arguments.ts'
import { commandGroups } from '../src/cli/commands/commands.ts'

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
