// The commands that use an endpoint as its clients do, and those that set clients up.

import { adminOptions } from '../admin/admin-client.ts'
import { credentialOptions, endpointText } from '../client/target.ts'
import { jsonOption, type CommandSpec } from './command.ts'

const hostNames = ['claude-code', 'claude-desktop', 'vscode', 'cursor', 'chatgpt', 'zed', 'codex', 'goose', 'inspector']

export const clientCommands: readonly CommandSpec[] = [
  {
    name: 'connect',
    summary: 'print, or put into place, what a host needs to reach an endpoint',
    operands: '<endpoint>',
    options: [
      { flags: '--host <host>', text: 'which', choices: hostNames },
      { flags: '--name <name>', text: 'how the host calls it. Default: gatehouse' },
      { flags: '--write', text: "change the host's file, and keep it as it was beside it" },
      jsonOption,
      ...credentialOptions.slice(0, 2)
    ],
    text: `${endpointText}
Without a key the host signs in by itself, where the tenant has auth.issuers or auth.login.

--json: { host, title, name, url, file: { path, format, at, snippet }, command, link, done, notes, doubts }, the key in
it as in the text. file, command and link are there where the host has them; done is what --write did;
notes are what a person has to do, doubts what may not be meant in the URL.

--write changes the lines of the entry and nothing else. An entry of that name which leads to an endpoint of a gateway
(…/t/TENANT/mcp) is updated, and it is told where it led. One that led to another origin loses its headers, variables
and sign-in: they may be secrets of the gateway there. An entry of anything else stays, and the command fails.`,
    examples: [
      'gatehouse connect https://mcp.example.com/t/acme/mcp --host vscode',
      'gatehouse connect demo --host cursor --key-file data/api-key --write'
    ],
    run: async (given, io) => await (await import('../client/connect.ts')).runConnect(given, io)
  },
  {
    name: 'list',
    summary: 'list what an endpoint offers to the caller',
    operands: '<endpoint> [kind]',
    options: [jsonOption, ...credentialOptions],
    text: `${endpointText} The kind is tools (the default), prompts, resources or templates.`,
    examples: [
      'gatehouse list demo --key-file data/api-key',
      'gatehouse list https://mcp.example.com/t/acme/mcp prompts'
    ],
    run: async (given, io) => await (await import('../client/call.ts')).runList(given, io)
  },
  {
    name: 'call',
    summary: 'call a tool of an endpoint',
    operands: '<endpoint> <tool> [arguments]',
    options: [jsonOption, ...credentialOptions],
    text: `${endpointText} The arguments are an object in JSON or YAML. Prints the content of the result;
progress goes to standard error. Exits with 1 where the tool says that it has failed, and where the call is refused.`,
    examples: [`gatehouse call demo everything__echo '{ "message": "hello" }' --key-file data/api-key`],
    run: async (given, io) => await (await import('../client/call.ts')).runCall(given, io)
  },
  {
    name: 'doctor',
    summary: 'connect to an endpoint step by step, as a host does; say who has to do what at the first failure',
    operands: '[endpoint]',
    options: [
      { flags: '--url <url>', text: 'the URL of the endpoint, as hosts get it' },
      { flags: '--login', text: 'register, and sign in with a browser, as a host does' },
      { flags: '--device', text: 'the same from a machine without a browser, by a code for another device' },
      ...credentialOptions.slice(0, 2),
      {
        flags: '--client-id <id>',
        text: 'use this client, which is registered there with http://127.0.0.1 and any port'
      },
      { flags: '--origin <origin>', text: 'the Origin of a host that is a web page, such as https://claude.ai' },
      { flags: '--ca <file>', text: 'certificates (PEM) that are trusted besides the public authorities' },
      { flags: '--timeout <seconds>', text: 'for one request. Default: 20' },
      jsonOption
    ],
    text: `${endpointText}
DNS, TLS, Host and Origin, the 401, metadata, discovery, registration, authorization, token, initialize, list, ping.
docs/doctor.md has everything that it finds. Exits with 1 where a hop fails. --login and --device leave a client at
the authorization server, as each host does. The page is opened in a browser, unless GATEHOUSE_NO_BROWSER is set.`,
    examples: [
      'gatehouse doctor --url https://mcp.example.com/t/acme/mcp --login',
      'gatehouse doctor demo --key-file data/api-key'
    ],
    run: async (given, io) => await (await import('../client/doctor.ts')).runDoctor(given, io)
  },
  {
    name: 'tail',
    summary: 'show requests, live or from the log: caller, method, time, outcome and reason',
    operands: '[file]',
    options: [
      { flags: '--follow', text: 'wait for lines that are added to the file' },
      { flags: '--request <id>', text: 'the request with this X-Request-Id, with all that is known about it' },
      { flags: '--user <name>', text: 'of this user, API key or client' },
      { flags: '--tenant <id>', text: 'in this tenant' },
      { flags: '--endpoint <name>', text: 'at this endpoint' },
      { flags: '--upstream <name>', text: 'that led to this upstream' },
      { flags: '--tool <name>', text: 'of this tool, by the name that its upstream gives it, or after UPSTREAM__' },
      { flags: '--prompt <name>', text: 'of this prompt, by the name that its upstream gives it' },
      { flags: '--resource <uri>', text: 'of this resource, as the log names it' },
      { flags: '--method <method>', text: 'such as tools/call' },
      { flags: '--session <session>', text: 'of this session, as the log or session list names it' },
      { flags: '--address <address>', text: 'from this address' },
      { flags: '--outcome <outcome>', text: 'with this outcome (docs/logging.md)' },
      { flags: '--failed', text: 'that failed or were refused' },
      { flags: '--slower <ms>', text: 'that took at least so many milliseconds' },
      { flags: '--since <time>', text: '10:42 (the last that has been), 15m (ago), or 2026-07-28T10:42:00Z' },
      { flags: '--until <time>', text: 'the same' },
      { flags: '--json', text: 'the lines as they are in the log' },
      ...adminOptions
    ],
    text: `
FILE is the log of the gateway (its standard error) as JSON lines; - is standard input. Without one, calls are shown as
they end, at every process, by the admin API.`,
    examples: [
      'gatehouse tail --tenant acme --failed',
      'gatehouse tail gatehouse.log --user alice --failed --since 10:42 --until 10:43',
      'gatehouse tail gatehouse.log --request 5d0c0c0e-4a3b-4c22-9a37-1df0a6f3b1c2',
      'journalctl -u gatehouse -o cat | gatehouse tail - --slower 5000'
    ],
    run: async (given, io) => await (await import('../client/tail.ts')).runTail(given, io)
  }
]
