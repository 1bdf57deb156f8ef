// Node's HTTP, without what comes with an import of it: a module that imports `node:http` is given all its names, also
// `WebSocket`, for which Node loads the undici within it. That is 13 MiB, which the gateway does not use.

export const nodeHttp = process.getBuiltinModule('node:http')
