// What a browser shows of the gateway: what this is, and how to connect. It names no tenant, no version and no setting.

export const frontPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gatehouse</title>
<h1>This is an MCP gateway</h1>
<p>MCP hosts connect to it; there is nothing to see here for a browser. The URL of an endpoint has the form</p>
<pre>/t/<em>TENANT</em>/mcp &nbsp; or &nbsp; /t/<em>TENANT</em>/<em>ENDPOINT</em>/mcp</pre>
<p>Ask whoever runs this gateway for yours, and give it to your host (Claude, ChatGPT, VS Code, Cursor, …).
It signs you in, or takes an API key.</p>
<p>Does a host not get through? <code>gatehouse doctor --url URL</code> says why.</p>
</html>
`

export const frontPageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Length': Buffer.byteLength(frontPage),
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store'
} as const
