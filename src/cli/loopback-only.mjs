// Preloaded into the demo server of the quickstart, which otherwise listens on every address of the machine without authentication.
import { Server } from 'node:net'

const listen = Server.prototype.listen
Server.prototype.listen = function (port, ...rest) {
  return listen.call(
    this,
    { port: Number(port), host: '127.0.0.1' },
    ...rest.filter((value) => typeof value === 'function')
  )
}
