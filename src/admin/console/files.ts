// The files of the console, as the admin listener sends them: those of src/console and, in a checkout, the modules that
// they import, each by name; in the published package one minified bundle. No other file of node_modules is served.

import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

const own = join(import.meta.dirname, '..', '..', 'console')
const { resolve } = createRequire(import.meta.url)

/** The package and the file of each module, by its name below /console/modules/. */
const modules: Readonly<Record<string, readonly [name: string, file: string]>> = {
  'preact.js': ['preact', 'dist/preact.mjs'],
  'preact-hooks.js': ['preact', 'hooks/dist/hooks.mjs'],
  'signals.js': ['@preact/signals', 'dist/signals.module.js'],
  'signals-core.js': ['@preact/signals-core', 'dist/signals-core.module.js'],
  'htm.js': ['htm', 'dist/htm.module.js'],
  'uplot.js': ['uplot', 'dist/uPlot.esm.js'],
  'uqr.js': ['uqr', 'dist/index.mjs'],
  'uplot.css': ['uplot', 'dist/uPlot.min.css']
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml'
}

export interface ConsoleFile {
  readonly type: string
  readonly etag: string
  readonly plain: Buffer
  readonly brotli: Buffer
  readonly gzip: Buffer
}

const toBrotli = promisify(brotliCompress)
const toGzip = promisify(gzip)

async function load(path: string): Promise<ConsoleFile> {
  const plain = await readFile(path)
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length }
  const [brotli, gzipped] = await Promise.all([toBrotli(plain, { params }), toGzip(plain)])
  return {
    type: types[extname(path)] ?? 'application/octet-stream',
    etag: `"${hash('sha256', plain, 'base64url').slice(0, 22)}"`,
    plain,
    brotli,
    gzip: gzipped
  }
}

/** Read and compressed once, when somebody first asks. */
export function createConsoleFiles() {
  const loaded = new Map<string, Promise<ConsoleFile>>()
  let listed: Promise<ReadonlyMap<string, string>> | undefined

  async function paths(): Promise<ReadonlyMap<string, string>> {
    const files = await readdir(own, { recursive: true })
    const shown = files
      .filter((file) => types[extname(file)] !== undefined)
      .map((file) => [file.split(sep).join('/'), join(own, file)] as const)
    if (shown.some(([name]) => name.startsWith('bundle/'))) return new Map(shown)
    const foreign = Object.entries(modules).map(
      ([name, [packageName, file]]) =>
        // The package.json of signals-core and of htm cannot be asked for by name: `exports` does not have it.
        [`modules/${name}`, join(packageFolder(packageName, resolve(packageName)), file)] as const
    )
    return new Map([...shown, ...foreign])
  }

  return {
    /** @param name below /console/; undefined: there is no such file */
    async get(name: string): Promise<ConsoleFile | undefined> {
      const path = (await (listed ??= paths().catch(forgetting(() => (listed = undefined))))).get(name || 'index.html')
      if (path === undefined) return undefined
      const file = loaded.get(path) ?? load(path).catch(forgetting(() => loaded.delete(path)))
      loaded.set(path, file)
      return await file
    },
    /** The digest of the one import map of the page, by which its policy allows that and no other inline text. */
    async importMapDigest(): Promise<string | undefined> {
      const html = (await this.get(''))?.plain.toString() ?? ''
      const [, map] = /<script type="importmap">([^]*?)<\/script>/.exec(html) ?? []
      return map && `sha256-${hash('sha256', map, 'base64')}`
    }
  }
}

/** Forgets a failed read, so that it is tried again with the next request: too many files may have been open. */
const forgetting =
  (forget: () => unknown) =>
  (error: unknown): never => {
    forget()
    throw error
  }

/**
 * Of a package: up from its entry to the folder that is called as it is.
 * @throws Error where there is none, because something has put the package elsewhere
 */
export function packageFolder(name: string, entry: string): string {
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder))
    if (folder.endsWith(join(sep, 'node_modules', name))) return folder
  throw new Error(`the console needs ${name}, and ${entry} is in no folder node_modules/${name}: install with npm`)
}
