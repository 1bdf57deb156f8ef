// `node scripts/trace.ts`: the files of src that one warm tools/call of each kind enters, in order. `--write` puts them into
// docs/call-paths.md, which test/trace/call-paths.test.ts holds against the code.

import { writeFile } from 'node:fs/promises'
import { callPathsPage, recordCallPaths } from '../test/trace/call-paths.ts'

const page = callPathsPage(await recordCallPaths())
if (process.argv[2] === '--write') await writeFile(new URL('../docs/call-paths.md', import.meta.url), page)
else process.stdout.write(page)
