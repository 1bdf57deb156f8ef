// `node scripts/eras.ts`: runs the matrix of client and server revisions, and writes docs/protocol-eras.md from what it
// shows.

import { writeFile } from 'node:fs/promises'
import { eraPage } from '../test/matrix/page.ts'
import { runMatrix } from '../test/matrix/run.ts'

const closers: Array<() => unknown> = []
const ran = await runMatrix({
  teardown: (close) => {
    closers.push(close)
  }
})
for (const close of closers.toReversed()) await close()
const failed = ran.filter(({ faults, seen }) => faults.length > 0 || seen === undefined)
for (const { client, revision, transport, feature, faults } of failed)
  console.error(`${client} -> ${revision} ${transport}, ${feature}: ${faults.join('; ')}`)
if (failed.length > 0) {
  console.error(`${failed.length} cells failed; the page is left as it was.`)
  process.exitCode = 1
} else {
  await writeFile(new URL('../docs/protocol-eras.md', import.meta.url), eraPage(ran))
  console.log(`docs/protocol-eras.md written from ${ran.length} cells`)
}
