// The help texts.

const topics: Readonly<Record<string, string>> = {
  serve: `gatehouse serve --config FILE [--host H] [--port P] [--data DIR]
gatehouse serve --mcp-json FILE [--host H] [--port P] [--data DIR]

Runs the gateway. With --config on a gatehouse configuration (YAML or JSON; see docs/config.md), which is watched: a changed
file is taken without a restart, a broken one is refused and the old one stays. With --mcp-json directly on an mcp.json or
claude_desktop_config.json, as tenant "demo" with an API key that is made once and kept in the data folder.

  --host H     listen address, instead of listen.host
  --port P     listen port, instead of listen.port; 0 takes any free one
  --data DIR   folder for the sqlite file (and the key of --mcp-json); with --config only if store is a file. Default: ./data

When ready, standard output carries one line: gatehouse listening on http://HOST:PORT
Logs are JSON lines on standard error, readable ones on a terminal.
SIGTERM or SIGINT: stops accepting, finishes calls (limits.drainMs), stops children, exits 0. A second one exits at once.
SIGHUP: reads the configuration again now.
`,
  quickstart: `gatehouse quickstart [--host H] [--port P] [--data DIR]      (this is what "npm start" runs)

Runs the gateway with a demo tenant: two upstreams over stdio (everything, memory) and one over Streamable HTTP (remote),
an API key that is made once and kept in the data folder, and everything you need to connect a host printed on the terminal.
`,
  check: `gatehouse check --config FILE

Checks a configuration and prints every problem at once: key path, line, what is wrong, what to write. Exit code 1 if there are any.
`,
  import: `gatehouse import FILE

Turns an mcp.json or claude_desktop_config.json into a gatehouse configuration on standard output; what needs your attention goes
to standard error. Example: gatehouse import ~/.cursor/mcp.json > gatehouse.yaml
`,
  schema: `gatehouse schema

Prints the JSON Schema of the configuration, for editors and CI.
`,
  version: `gatehouse version

Prints the version.
`
}

/** The overview, or the page of one command. Unknown topics show the overview. */
export function help (topic: string | undefined): string {
  const page = topic === undefined ? undefined : topics[topic]
  return page ?? `Gatehouse: many MCP servers behind one authenticated endpoint.

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
}
