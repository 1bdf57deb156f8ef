// The image with runtimes, with an upstream that `npx` installs: /tmp is where it goes, and where it is run.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const config = {
  tenants: {
    demo: {
      auth: 'none',
      upstreams: { memory: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-memory'] } }
    }
  }
}

/** @param npm flags of `podman run` with which npm reaches its registry */
export async function meetNpx(podman: (...args: string[]) => string, npm: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-npx-'))
  const file = join(folder, 'gatehouse.json')
  writeFileSync(file, JSON.stringify(config), { mode: 0o644 })
  const inside = '/etc/gatehouse/gatehouse.json'
  const offered = (tmpfs: string): string =>
    podman(
      'run',
      ...['--rm', '--read-only', '--cap-drop=ALL', `--tmpfs=${tmpfs}`, `--volume=${file}:${inside}:ro`, ...npm],
      ...['localhost/gatehouse-with-runtimes:local', 'check', '--config', inside, '--connect']
    )
  try {
    assert.match(offered('/tmp:exec,size=512m'), /demo\/mcp: [1-9]\d* tools/)
    assert.throws(() => offered('/tmp:noexec,size=512m'), 'the control: without exec it cannot be started')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
