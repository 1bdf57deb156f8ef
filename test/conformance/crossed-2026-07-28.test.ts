// The official suite for 2026-07-28, before a server that speaks 2025-11-25 only.

import t from 'tap'
import { crossed } from './crossed.ts'

await crossed(t, '2026-07-28', '2025-11-25', ['Streamable HTTP', 'stdio', 'HTTP+SSE'])
