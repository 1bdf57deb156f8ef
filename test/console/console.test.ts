// The pages of the console, all at one gateway and in one browser. Each file runs by itself, too.

import './pages.ts'
import './upstreams.ts'
import './clients.ts'
import './rules-and-records.ts'
import './calls.ts'
import './roles.ts'
