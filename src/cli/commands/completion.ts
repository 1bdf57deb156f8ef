// `completion`: a script for the shell, which knows all commands and options. It asks nobody while it completes.

import type { CommandSpec, CommandGroup, OptionSpec } from './command.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/** `complete` of bash, which needs the completion of zsh: that is off where no file of its user has switched it on. */
const zshBeginning = `(( $+functions[compdef] )) || { autoload -U compinit && compinit -i; }
autoload -U +X bashcompinit && bashcompinit
`

const longOf = ({ flags }: OptionSpec): string => flags.split(' ')[0] ?? ''

export const completionCommands = (groups: readonly CommandGroup[]): readonly CommandSpec[] => [
  {
    name: 'completion',
    summary: 'print the script that completes commands and options in a shell',
    options: [{ flags: '--shell <shell>', text: 'default: that of SHELL', choices: shells }],
    examples: ['eval "$(gatehouse completion --shell bash)"', 'gatehouse completion --shell fish | source'],
    run({ options }, { env, stdout }) {
      const own = shells.find((shell) => env['SHELL']?.endsWith(`/${shell}`) === true)
      const shell = shells.find((each) => each === options['shell']) ?? own ?? 'bash'
      stdout.write(shell === 'fish' ? fishScript(groups) : bashScript(groups, shell))
      return 0
    }
  }
]

/** The words that can follow each beginning: `''`, `policy`, `policy test`. */
function wordsAfter(groups: readonly CommandGroup[]): Map<string, Set<string>> {
  const words = new Map<string, Set<string>>([['', new Set(['help', 'completion'])]])
  const add = (before: string, word: string): void => {
    words.set(before, (words.get(before) ?? new Set()).add(word))
  }
  for (const { name, options = [] } of groups.flatMap(({ commands }) => commands)) {
    const [first = '', second] = name.split(' ')
    add('', first)
    if (second !== undefined) add(first, second)
    for (const option of options) add(name, longOf(option))
    add(name, '--help')
  }
  return words
}

function bashScript(groups: readonly CommandGroup[], shell: 'bash' | 'zsh'): string {
  const cases = [...wordsAfter(groups)].map(
    ([before, words]) => `    "${before}") offered="${[...words].join(' ')}" ;;`
  )
  const choices = groups
    .flatMap(({ commands }) => commands.flatMap(({ options = [] }) => options))
    .flatMap((option) =>
      option.choices === undefined ? [] : [`    ${longOf(option)}) offered="${option.choices.join(' ')}" ;;`]
    )
  return `${shell === 'zsh' ? zshBeginning : ''}_gatehouse() {
  local offered="" current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" name="\${COMP_WORDS[1]}"
  [ "$COMP_CWORD" -eq 1 ] && name=""
  [ "$COMP_CWORD" -gt 2 ] && case "\${COMP_WORDS[2]}" in -*) ;; *) name="$name \${COMP_WORDS[2]}" ;; esac
  case "$name" in
${cases.join('\n')}
    *) name="\${COMP_WORDS[1]}"; case "$name" in
${cases.join('\n')}
    esac ;;
  esac
  case "$before" in
${[...new Set(choices)].join('\n')}
    --config|--mcp-json|--data|--key-file|--admin-key-file) offered="" ;;
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  [ "\${#COMPREPLY[@]}" -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _gatehouse gatehouse
`
}

function fishScript(groups: readonly CommandGroup[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`
  const lines = groups
    .flatMap(({ commands }) => commands)
    .flatMap(({ name, summary, options = [] }) => {
      const [first = '', second] = name.split(' ')
      const under = second === undefined ? first : `${first}; and __fish_seen_subcommand_from ${second}`
      return [
        second === undefined
          ? `complete -c gatehouse -n __fish_use_subcommand -a ${first} -d ${quoted(summary)}`
          : `complete -c gatehouse -n __fish_use_subcommand -a ${first}\n` +
            `complete -c gatehouse -n '__fish_seen_subcommand_from ${first}' -a ${second} -d ${quoted(summary)}`,
        ...options.map(
          (option) =>
            `complete -c gatehouse -n '__fish_seen_subcommand_from ${under}' -l ${longOf(option).slice(2)}` +
            (option.flags.includes('<') ? ' -r' : '') +
            (option.choices === undefined ? '' : ` -a ${quoted(option.choices.join(' '))}`) +
            ` -d ${quoted(option.text)}`
        )
      ]
    })
  return `${[...new Set(lines.join('\n').split('\n'))].join('\n')}\n`
}
