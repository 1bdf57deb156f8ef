// One gateway and one browser for all pages of the console: to start them takes longer than most tests.

import t from 'tap'
import { consoleRig, furtherUpstreams } from './rig.ts'

export const rig = await consoleRig(t, { upstreams: await furtherUpstreams(t) })
await rig.traffic()
