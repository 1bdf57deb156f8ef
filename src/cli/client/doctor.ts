// `doctor`: examines an endpoint as a host meets it, and says at the first hop that fails who has to act, and how.

import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { catalogue, Diagnosis, type FaultCode } from '../../hosts/doctor/catalogue.ts'
import { examine, type DoctorOptions } from '../../hosts/doctor/examine.ts'
import { hopNames, type HopName } from '../../hosts/doctor/misconfiguration.ts'
import { visible } from '../../observe/text-log.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { jsonText } from '../printed.ts'
import { credentialOf, endpointUrl } from './target.ts'

/** @returns the exit code: 1 where a hop fails. @throws UsageError */
export async function runDoctor(given: Given, { env, stdout, stderr, version }: Io): Promise<number> {
  const [endpoint] = given.operands
  const {
    url = endpoint && endpointUrl(endpoint, env),
    login: inBrowser,
    device,
    'client-id': clientId,
    origin,
    ca: caFile,
    timeout,
    json
  } = given.options
  if (url === undefined) throw new UsageError('doctor needs --url URL, as hosts are given it, or ENDPOINT.')
  const seconds = timeout === undefined ? 20 : Number(timeout)
  if (!(seconds > 0 && seconds <= 600)) throw new UsageError('--timeout takes seconds, at most 600.')
  const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8').catch(() => '')
  if (ca === '') throw new UsageError(`${caFile} cannot be read. --ca takes a file with certificates (PEM).`)
  if (inBrowser !== undefined && device !== undefined) throw new UsageError('--login and --device: one of them.')
  const login: DoctorOptions['login'] =
    inBrowser !== undefined ? 'browser' : device !== undefined ? 'device' : undefined
  const token = login === undefined ? await credentialOf(given, env) : undefined
  const hops: Array<{ hop: HopName; text: string }> = []
  const passed = (hop: HopName, text: string): void => {
    hops.push({ hop, text })
    if (json === undefined) stdout.write(`ok    ${hopNames[hop].padEnd(hopWidth)}  ${visible(text)}\n`)
  }
  const browse = (page: string, userCode?: string): void => {
    if (userCode !== undefined)
      return void stderr.write(
        `Open this in a browser of any device, and allow the code ${visible(userCode)}:\n\n  ${visible(page)}\n\n`
      )
    stderr.write(`Sign in here:\n\n  ${page}\n\n`)
    if (env['GATEHOUSE_NO_BROWSER'] === undefined) openPage(page)
  }
  const options = { url, token, login, clientId, origin, ca, timeoutMs: seconds * 1_000, version }
  try {
    const untried = await examine(options, { passed, browse, waitMs: 300_000 })
    if (json !== undefined) stdout.write(jsonText({ hops, fault: null, untried }))
    else stdout.write(untried === '' ? 'All hops are well.\n' : `All hops that were tried are well. ${untried}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof Diagnosis)) throw error
    const { code, message, remedy } = error
    const { hop, side } = catalogue[code]
    if (json !== undefined) stdout.write(jsonText({ hops, fault: { code, hop, side, problem: message, remedy } }))
    else stdout.write(faultText(code, message, remedy))
    return 1
  }
}

/** In a clone, and where the package is installed. */
const guide = fileURLToPath(new URL('../../../docs/doctor.md', import.meta.url))

const hopWidth = Math.max(...Object.values(hopNames).map((name) => name.length))

function faultText(code: FaultCode, problem: string, remedy: string): string {
  const { hop, side } = catalogue[code]
  return (
    `FAILS ${hopNames[hop].padEnd(hopWidth)}  ${visible(problem)}\n\n` +
    `What to do, at the side of the ${side}:\n  ${visible(remedy)}\n\n(${code}, ${guide})\n`
  )
}

function openPage(page: string): void {
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', page]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', page]
        : ['xdg-open', page]
  const child = spawn(command ?? '', args, { stdio: 'ignore', detached: true })
  child.on('error', () => {}) // The URL is printed, too.
  child.unref()
}
