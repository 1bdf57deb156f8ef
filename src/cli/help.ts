// The help texts.

const topics: Readonly<Record<string, string>> = {
  serve: `gatehouse serve --config FILE [--host H] [--port P] [--data DIR]
gatehouse serve --mcp-json FILE [--host H] [--port P] [--data DIR]

Runs the gateway. --config takes a gatehouse configuration (YAML or JSON; see docs/config.md) and watches it: a changed
file is applied without a restart, an invalid one is refused and the old one stays in use. --mcp-json takes an mcp.json
or claude_desktop_config.json and serves it as tenant "demo", with an API key that is created once and kept in the data
folder.

  --host H     listen address, instead of listen.host
  --port P     listen port, instead of listen.port; 0 picks a free one
  --data DIR   folder for the SQLite file (and the key of --mcp-json); with --config only if store is a file.
               Default: ./data

When ready, it prints one line on standard output: gatehouse listening on http://HOST:PORT
The log goes to standard error, as JSON lines, or as plain text on a terminal.
SIGTERM or SIGINT: refuses new requests, finishes running calls (limits.drainMs), stops child processes, exits with 0.
A second one exits at once. SIGHUP: reads the configuration again.
`,
  quickstart: `gatehouse quickstart [--host H] [--port P] [--data DIR]      (this is what "npm start" runs)

Runs the gateway with a demo tenant that has two upstreams over stdio (everything, memory) and one over Streamable HTTP
(remote). Creates an API key once, keeps it in the data folder, and prints what you need to connect a host.
`,
  check: `gatehouse check --config FILE

Checks a configuration and prints all problems at once: key path, line, what is wrong, what to do. Exits with 1 if there
are any.
`,
  import: `gatehouse import FILE

Converts an mcp.json or claude_desktop_config.json to a gatehouse configuration on standard output. What needs your
attention goes to standard error. Example: gatehouse import ~/.cursor/mcp.json > gatehouse.yaml
`,
  schema: `gatehouse schema

Prints the JSON Schema of the configuration, for editors and CI.
`,
  version: `gatehouse version

Prints the version.
`
}

/** The overview, or the page of one command. Unknown topics show the overview. */
export function help(topic: string | undefined): string {
  const page = topic === undefined ? undefined : topics[topic]
  return (
    page ??
    `Gatehouse: many MCP servers behind one authenticated endpoint.

Usage: gatehouse COMMAND [OPTIONS]        (from a clone: npm run gatehouse -- COMMAND [OPTIONS])

  quickstart    demo tenant with three real upstreams; no configuration needed (npm start)
  serve         run the gateway on a configuration or on an existing mcp.json
  check         validate a configuration, all problems at once
  import        make a configuration from an mcp.json
  schema        print the JSON Schema of the configuration
  version       print the version
  help [CMD]    this page, or the page of a command

Documentation: README.md and the folder docs.
`
  )
}
