// Parses the command line with commander, from the tables in src/cli/commands. Every mistake is reported in one
// sentence, with what to write instead.

import { fileURLToPath } from 'node:url'
import { Command as Parser, CommanderError, Option } from 'commander'
import { nearest } from '../config/problems.ts'
import { UsageError, type CommandSpec, type CommandGroup, type Given } from './commands/command.ts'
import { commandGroups } from './commands/commands.ts'

/** What was asked for: a command, or a text to print. */
export type Asked = ({ readonly command: CommandSpec } & Given) | { readonly command: undefined; readonly text: string }

/** @throws UsageError */
export function readArguments(argv: readonly string[], groups: readonly CommandGroup[] = commandGroups): Asked {
  const [first, ...rest] = argv
  if (first === undefined) return { command: undefined, text: help([], groups) }
  if (first === 'help') return { command: undefined, text: help(rest, groups) }
  let chosen: Asked | undefined
  const printed: string[] = []
  const parser = parserOf(groups, (command, given) => (chosen = { command, ...given }), printed)
  try {
    parser.parse([...(first === '-v' ? ['version'] : first === '--version' ? ['version'] : [first]), ...rest], {
      from: 'user'
    })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return { command: undefined, text: printed.join('') }
    throw new UsageError(sentenceOf(error, argv, groups))
  }
  return chosen ?? { command: undefined, text: printed.join('') }
}

/** The overview, or the page of one command, of which the words are given. @throws UsageError */
export function help(words: readonly string[], groups: readonly CommandGroup[] = commandGroups): string {
  const printed: string[] = []
  const parser = parserOf(groups, () => {}, printed)
  try {
    parser.parse([...words, '--help'], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode !== 0) throw new UsageError(sentenceOf(error, words, groups))
  }
  return printed.join('')
}

/** The command whose page explains what was meant; undefined: none is named. */
export function namedCommand(argv: readonly string[], groups: readonly CommandGroup[] = commandGroups) {
  const names = new Set(groups.flatMap(({ commands }) => commands.map(({ name }) => name)))
  return [argv.slice(0, 2).join(' '), argv[0] ?? ''].find((each) => names.has(each))
}

/** All of them, though they stand in several groups. */
const namesBelow = (first: string, groups: readonly CommandGroup[]): string[] =>
  groups.flatMap(({ commands }) => commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? name : [])))

/** commander says "error: unknown command 'sreve'\n(Did you mean serve?)". */
function sentenceOf(
  { code, message }: CommanderError,
  argv: readonly string[],
  groups: readonly CommandGroup[]
): string {
  const [what = '', hint = ''] = message.replace(/^error: /, '').split('\n')
  const suggestion = hint === '' ? '' : ` ${hint.replace(/^\((.*)\)$/, '$1')}`
  const all = groups.flatMap(({ commands }) => commands)
  const [first = '', second = ''] = argv
  const ofFirst = namesBelow(first, groups)
  if (code === 'commander.help') return `Say which: ${ofFirst.join(', ')}.`
  if (code === 'commander.unknownCommand' && ofFirst.length > 0) {
    const meant = nearest(`${first} ${second}`, ofFirst)
    const instead = meant === undefined ? `There are ${ofFirst.join(', ')}.` : `Did you mean ${meant}?`
    return `Unknown command "${first} ${second}". ${instead}`
  }
  const [, flag = '', value = '', choices = ''] =
    /^option '(--\S+).*' argument '(.*)' is invalid. Allowed choices are (.*)\.$/s.exec(what) ?? []
  if (flag !== '') {
    const meant = nearest(value, choices.split(', '))
    return `${flag} takes one of ${choices}, not "${value}".${meant === undefined ? '' : ` Did you mean ${meant}?`}`
  }
  const [, lone] = /^option '(--\S+ .*)' argument missing$/.exec(what) ?? []
  if (lone !== undefined) return `${lone.split(' ', 1)[0]} needs a value: ${lone}.`
  const [, operand] = /^missing required argument '(.*)'$/.exec(what) ?? []
  const command = all.find(({ name }) => name === namedCommand(argv, groups))
  if (operand !== undefined && command !== undefined)
    return `<${operand}> is missing: gatehouse ${command.name} ${command.operands}.`
  const isOfGateway = groups.some(
    ({ heading, commands }) => /admin API/.test(heading) && commands.some((each) => each === command)
  )
  if (isOfGateway && what === "unknown option '--config'")
    return (
      `"gatehouse ${command?.name}" asks a gateway, and takes no --config. Of a file alone "gatehouse check FILE" ` +
      'says whether it is valid, with --connect what its endpoints offer; "gatehouse tenant list --config FILE", ' +
      '"tenant get", and the same of upstream and endpoint say what is in it; "status" how its upstreams do, "plan" ' +
      'what a change of it would do.'
    )
  if (code === 'commander.excessArguments' && command !== undefined && command.operands === undefined) {
    const flags = command.options?.flatMap((option) => (option.flags.includes('<') ? [option.flags] : [])) ?? []
    if (flags.some((each) => each.startsWith('--endpoint ')))
      return `"gatehouse ${command.name}" takes its endpoint as an option: --endpoint ENDPOINT.`
    if (flags.length > 0) return `"gatehouse ${command.name}" takes what it needs as options: ${flags.join(', ')}.`
  }
  if (/^unknown option '-[^-]/.test(what))
    return `${what.replaceAll("'", '"').replace(/^./, 'U')}. A value that begins with a dash goes behind " -- ".`
  const said = what.replaceAll("'", '"').replace(/^./, (letter) => letter.toUpperCase())
  return `${said}${/[.?]$/.test(said) ? '' : '.'}${suggestion}`
}

function parserOf(
  groups: readonly CommandGroup[],
  choose: (command: CommandSpec, given: Given) => void,
  printed: string[]
): Parser {
  const settings = (parser: Parser): Parser =>
    parser
      .exitOverride()
      .configureOutput({ writeOut: (text) => printed.push(text), writeErr: () => {}, getOutHelpWidth: () => 120 })
      .helpOption('-h, --help', 'this page')
      .helpCommand(false)
  const root = settings(new Parser('gatehouse'))
    .description('Gatehouse: many MCP servers behind one authenticated endpoint.')
    .usage('COMMAND [OPTIONS]        (from a clone: npm run gatehouse -- COMMAND [OPTIONS])')
    .addHelpText(
      'after',
      '\ngatehouse help COMMAND has its page. Documentation: ' + fileURLToPath(new URL('../../docs', import.meta.url))
    )
  const parents = new Map<string, Parser>()
  for (const { heading, commands } of groups) {
    for (const command of commands) {
      const words = command.name.split(' ')
      const name = words.pop() ?? ''
      let parent = root
      const [above] = words
      if (above !== undefined) {
        parent = parents.get(above) ?? root
        if (parent === root) {
          const of = namesBelow(above, groups)
          parent = settings(root.command(above)).description(of.join(', ')).helpGroup(heading)
          parents.set(above, parent)
        }
      }
      addCommand(settings(parent.command(name)), command, choose)
      if (parent === root) parent.commands.at(-1)?.helpGroup(heading)
    }
  }
  return root
}

function addCommand(parser: Parser, command: CommandSpec, choose: (command: CommandSpec, given: Given) => void): void {
  const { summary, text, operands, options = [], examples } = command
  parser.summary(summary).description(`${summary.replace(/^./, (letter) => letter.toUpperCase())}.`)
  for (const operand of operands?.split(' ') ?? []) parser.argument(operand)
  for (const { flags, text: about, choices, many } of options) {
    const option = new Option(flags, about)
    // commander would treat `--no-...` as the negation of another option.
    option.negate = false
    if (choices !== undefined) option.choices(choices)
    if (many !== undefined)
      option.argParser((value: string, before: string | undefined) => (before ?? '') + `${value}\n`)
    parser.addOption(option)
  }
  const after = [text?.trim(), examples.map((each) => `  ${each}`).join('\n')]
  const [about, lines] = after
  parser.addHelpText('after', `${about === undefined ? '' : `\n${about}\n`}\nExamples:\n${lines}`)
  parser.action(() => {
    const values = parser.opts<Record<string, unknown>>()
    const given = parser.options.flatMap((option) => {
      const value = values[option.attributeName()]
      const name = option.long?.slice(2) ?? ''
      return value === undefined || value === false ? [] : [[name, typeof value === 'string' ? value.trimEnd() : '']]
    })
    choose(command, { options: Object.fromEntries(given) as Given['options'], operands: parser.args })
  })
}
