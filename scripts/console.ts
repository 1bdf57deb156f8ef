// The console as the published package has it: one minified bundle, whose pages are loaded when they are opened, in place
// of the modules of src/console. Run by itself it prints what a browser gets for its first page, compressed.

import { build } from 'esbuild'
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const source = join(root, 'src', 'console')

/** @param to an empty folder */
export async function bundleConsole(to: string): Promise<void> {
  const styles = readFileSync(join(source, 'index.html'), 'utf8').matchAll(
    /<link rel="stylesheet" href="([^"]+)" \/>\n/g
  )
  const sheets = [...styles].map(([, href = '']) => href.replace('modules/uplot.css', 'uplot/dist/uPlot.min.css'))
  await build({
    absWorkingDir: source,
    entryPoints: { main: 'main.js', style: 'style.css' },
    outdir: join(to, 'bundle'),
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    target: 'es2024',
    // Where only the sources are, what src/console/tsconfig.json extends is not there.
    tsconfigRaw: {},
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [
      {
        name: 'style',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^style\.css$/ }, () => ({ path: 'style', namespace: 'style' }))
          onLoad({ filter: /./, namespace: 'style' }, () => ({
            contents: sheets.map((sheet) => `@import '${sheet.startsWith('style/') ? './' : ''}${sheet}';`).join('\n'),
            resolveDir: source,
            loader: 'css'
          }))
        }
      }
    ]
  })
  writeFileSync(join(to, 'index.html'), page(readFileSync(join(source, 'index.html'), 'utf8')))
  copyFileSync(join(source, 'icon.svg'), join(to, 'icon.svg'))
}

/** One sheet, one script, and no import map: then the policy has no digest either. */
const page = (html: string): string =>
  html
    .replace(/ *<link rel="stylesheet"[^>]*>\n/g, '')
    .replace(/ *<script type="importmap">[^]*?<\/script>\n/, '    <link rel="stylesheet" href="bundle/style.css" />\n')
    .replace('src="main.js"', 'src="bundle/main.js"')

if (import.meta.main) {
  const to = join(root, '.tap', 'console')
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  await bundleConsole(to)
  for (const file of globSync('**/*.{js,css,html,svg}', { cwd: to })) {
    const plain = readFileSync(join(to, file))
    console.log(`${file}: ${plain.length} bytes, ${brotliCompressSync(plain).length} compressed`)
  }
}
