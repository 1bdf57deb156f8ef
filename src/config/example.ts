// The complete example of docs/config.md. A test compiles it.

/** Needs the environment variables CI_KEY and TICKETS_KEY. */
export const exampleConfig = `listen: { host: 0.0.0.0, port: 8080 }
publicUrl: https://mcp.example.com
hosts: [gatehouse.internal]
store: file:./data/gatehouse.db
logLevel: info
limits:
  sessionIdleMs: 1800000
  drainMs: 30000

tenants:
  acme:
    origins: [https://claude.ai]
    auth:
      issuers:
        - issuer: https://idp.example.com
      keys:
        - { name: ci, key: "\${CI_KEY}", scopes: [mcp] }
        - name: nightly
          sha256: 7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a
          scopes: [mcp]
      requiredScopes: [mcp]
    upstreams:
      files:
        command: npx
        args: [-y, "@modelcontextprotocol/server-filesystem", /srv/files]
        env: { LOG_LEVEL: "\${FILES_LOG_LEVEL:-warn}" }
        cwd: /srv
        isolation: session
      tickets:
        type: http
        url: https://tickets.example.com/mcp
        headers: { X-Api-Key: "\${TICKETS_KEY}" }
        timeoutMs: 120000
    endpoints:
      default: { upstreams: [files, tickets] }                        # /t/acme/mcp: files__read, tickets__search, ...
      files: { upstreams: [files], prefix: "" }                       # /t/acme/files/mcp: names untouched
      support:                                                        # /t/acme/support/mcp: t.search, files.read
        upstreams: [{ upstream: tickets, prefix: t }, files]
        separator: "."
        instructions: Look for an open ticket before you make a new one.
`
