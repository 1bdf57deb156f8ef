// Where a gateway listens and keeps its data, for the commands that run one.

import type { OptionSpec } from './command.ts'

export const listenOptions: readonly OptionSpec[] = [
  { flags: '--host <host>', text: 'listen address. Default: listen.host of the configuration, else 127.0.0.1' },
  { flags: '--port <port>', text: 'listen port; 0 picks a free one. Default: listen.port, else 8080' },
  {
    flags: '--data <folder>',
    text: 'folder for the SQLite file and the API key; with --config only if store is a file. Default: ./data'
  }
]
