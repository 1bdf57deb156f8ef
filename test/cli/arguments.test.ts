// The command line itself: mistakes are answered by what was meant, every help has an example, and the shell completes.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { help } from '../../src/cli/arguments.ts'
import { commandGroups } from '../../src/cli/commands/commands.ts'
import { hosts } from '../../src/hosts/hosts.ts'
import { cli } from './kit.ts'

const commands = commandGroups.flatMap((group) => group.commands)

t.test('a misspelt command or option is answered by the one that was meant', async (t) => {
  for (const [argv, said] of [
    [['sreve'], 'Unknown command "sreve". Did you mean serve?'],
    [['policy', 'tst'], 'Unknown command "policy tst". Did you mean policy test?'],
    [['check', '--conect'], 'Unknown option "--conect". Did you mean --connect?'],
    [
      ['apply', 'a.yaml', '--config', 'b.yaml'],
      /^"gatehouse apply" asks a gateway, and takes no --config\. .*check FILE/
    ],
    [['catalog', 'acme', '--config', 'b.yaml'], /^"gatehouse catalog" asks a gateway/],
    [['policy', 'test', 'a', '--config', 'b'], 'Unknown option "--config".'],
    [
      ['session', 'end', 'acme', '-T0Cqptk8lwTRzxX3'],
      'Unknown option "-T0Cqptk8lwTRzxX3". A value that begins with a dash goes behind " -- ".'
    ],
    [['key', 'create', 'acme'], 'Unknown command "key create". There are key list, key new, key revoke.'],
    [['serve', '--port'], '--port needs a value: --port <port>.'],
    [['call', 'demo'], '<tool> is missing: gatehouse call <endpoint> <tool> [arguments].'],
    [
      ['connect', 'demo', '--host', 'vs-code'],
      /^--host takes one of claude-code, .*, not "vs-code"\. Did you mean vscode\?/
    ],
    [['connect', 'demo', '--host', 'emacs'], /inspector, not "emacs"\.$/],
    [['key'], 'Say which: key list, key new, key revoke.'],
    [['serve', 'x.yaml'], /^"gatehouse serve" takes what it needs as options: --config <file>, --mcp-json <file>, --h/],
    [['completion', 'zsh'], '"gatehouse completion" takes what it needs as options: --shell <shell>.'],
    [['version', 'x'], /^Too many arguments for "version"/],
    [['explain', 'demo'], '"gatehouse explain" takes its endpoint as an option: --endpoint ENDPOINT.'],
    [['check', 'a', 'b'], /Expected 1 argument but got 2: a, b/]
  ] as const)
    t.match(await cli(argv), { code: 2, out: '', err: said }, argv.join(' '))
  t.match(await cli(['check', '--help']), { code: 0, out: /^Usage: gatehouse check/ }, 'and a right one is taken')
})

t.test('every command has a page with an example that the command line takes', async (t) => {
  t.ok(commands.length > 40)
  for (const { name, examples } of commands) {
    const page = help(name.split(' '))
    t.match(page, `Usage: gatehouse ${name}`, name)
    t.ok(examples.length > 0 && examples.every((each) => page.includes(each)), `${name} has examples`)
    t.ok(
      examples.some((each) => each.includes(`gatehouse ${name}`)),
      `an example of ${name} shows it`
    )
  }
  t.equal((await cli([])).out, help([]))
  t.match(help([]), /^ +audit +audit list, audit heads, audit export, audit verify$/m, 'of all groups')
  t.equal((await cli(['help'])).out, help([]))
})

t.test('bash completes commands, their second words, options and choices', async (t) => {
  const { out } = await cli(['completion', '--shell', 'bash'])
  const complete = (...words: string[]): string[] => {
    const line = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _gatehouse; echo "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', `complete() { :; }; ${out}\n${line}`], { encoding: 'utf8' })
    t.equal(stderr, '')
    return stdout.trim().split(' ')
  }
  t.same(complete('gatehouse', 'ser'), ['serve'])
  t.same(complete('gatehouse', 'policy', ''), ['test'])
  t.same(complete('gatehouse', 'kill', 'tool', '--u'), ['--undo'])
  t.same(complete('gatehouse', 'connect', 'demo', '--host', 'v'), ['vscode'])
  const zsh = (await cli(['completion', '--shell', 'zsh'])).out
  t.match(
    zsh,
    /^\(\( \$\+functions\[compdef\] \)\) \|\| \{ autoload -U compinit && compinit -i; \}\nautoload -U \+X bashcompinit/
  )
  t.notMatch(zsh, /\bwords\b/, 'a special parameter of zsh')
  t.match((await cli(['completion'], { SHELL: '/usr/bin/fish' })).out, /complete -c gatehouse .*-a serve/)
  t.match((await cli(['completion'], { SHELL: '/bin/zsh' })).out, /bashcompinit/)
})

const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).error === undefined

t.test('fish completes the same', async (t) => {
  if (!isInstalled('fish')) return t.pass('it is not installed here')
  const { out } = await cli(['completion', '--shell', 'fish'])
  const file = join(t.testdir({ 'gatehouse.fish': out }), 'gatehouse.fish')
  for (const [line, word] of [
    ['gatehouse ser', 'serve'],
    ['gatehouse policy t', 'test'],
    ['gatehouse kill tool --u', '--undo'],
    ['gatehouse connect demo --host v', 'vscode']
  ] as const) {
    const script = `source '${file}'; complete -C '${line}'`
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' })
    t.equal(stderr, '')
    t.match(stdout, new RegExp(`^${word}\\t`, 'm'), line)
  }
})

t.test('zsh takes it, without compinit before', async (t) => {
  if (!isInstalled('zsh')) return t.pass('it is not installed here')
  const { out } = await cli(['completion', '--shell', 'zsh'])
  const script = `${out}\nprint -r -- $_comps[gatehouse]`
  const env = { ...process.env, ZDOTDIR: t.testdir() }
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script], { encoding: 'utf8', env })
  t.equal(stderr, '')
  t.match(stdout, '_gatehouse')
})

t.test('the hosts that --host offers are those that there are', async (t) => {
  const choices = commands.find(({ name }) => name === 'connect')?.options?.[0]?.choices
  t.same(choices, Object.keys(hosts))
})

t.test('a mistake on a real command line exits with 2 and leaves standard output empty', async (t) => {
  const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, 'chekc'], { encoding: 'utf8' })
  t.same([status, stdout], [2, ''])
  t.match(stderr, /^gatehouse: Unknown command "chekc"\. Did you mean check\?\nRun "gatehouse help" for all commands/)
})
