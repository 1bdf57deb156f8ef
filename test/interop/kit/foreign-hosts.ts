// Hosts of other languages that know a URL alone, by their own OAuth code, unchanged: from a 401 to a tool result.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { browser } from '../../kit/browser.ts'
import { loginGateway, redirectUri } from '../../login/kit.ts'
import { within, type Outcome } from './foreign.ts'
import type { Command } from './servers.ts'

/**
 * Runs a host that is told a redirect URI and the URL of a gateway, prints `open URL` where a person has to sign in,
 * and `ok NAME` or `not ok NAME: REASON` for each step.
 * @param listens it is itself where the browser comes back to; otherwise it reads that URL from its standard input
 */
export async function meetHost(peer: string, listens: boolean, { command, args }: Command): Promise<Outcome[]> {
  return await within(async (t) => {
    const front = await loginGateway(t)
    const child = spawn(command, [...args, redirectUri, front.url()], {
      // What it opens in place of a browser.
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], BROWSER: 'echo open %s' },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: 120_000
    })
    const outcomes: Outcome[] = []
    const errors: string[] = []
    createInterface(child.stderr).on('line', (line) => {
      errors.push(line)
    })
    const signIn = async (url: string): Promise<void> => {
      const stopAt = listens ? 'no redirect is left out' : redirectUri
      const person = browser()
      const end = await person.press(await person.go(url, stopAt), '/allow', stopAt)
      if (!listens) child.stdin.write(`${end.url.href}\n`)
      outcomes.push({ peer, step: 'a person signs in and allows it', failure: undefined })
    }
    createInterface(child.stdout).on('line', (line) => {
      const [, url] = /^open (\S+)$/.exec(line) ?? []
      if (url !== undefined)
        signIn(url).catch((error: unknown) =>
          outcomes.push({ peer, step: 'a person signs in and allows it', failure: String(error) })
        )
      const [, not, step = '', failure = ''] = /^(not )?ok ([^:]+)(?:: (.*))?$/.exec(line) ?? []
      if (step !== '') outcomes.push({ peer, step, failure: not === undefined ? undefined : failure })
    })
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0 || outcomes.length < 3)
      outcomes.push({ peer, step: 'runs to its end', failure: `exit ${code}: ${errors.slice(-6).join(' | ')}` })
    return outcomes
  })
}
