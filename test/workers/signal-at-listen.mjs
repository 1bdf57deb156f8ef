// Loaded before `serve --workers`: the first worker and the primary get SIGINT while that worker opens its port.

import cluster from 'node:cluster'
import { Server } from 'node:net'

const { listen } = Server.prototype

if (cluster.worker?.id === 1) {
  Server.prototype.listen = function (...where) {
    for (const pid of [process.ppid, process.pid]) process.kill(pid, 'SIGINT')
    return listen.apply(this, where)
  }
}
