// The official suite for 2025-11-25, before a server that speaks 2026-07-28 only.

import t from 'tap'
import { crossed } from './crossed.ts'

await crossed(t, '2025-11-25', '2026-07-28', ['Streamable HTTP', 'stdio'])
