// Says why a child process did not start, or ended before its server answered, and what the operator can do. The
// sentences never repeat the output of the child, because callers see them too.

import { existsSync } from 'node:fs'
import { isOutOfDescriptors, outOfDescriptors } from '../../limits/descriptors.ts'
import { GatewayError, type UpstreamName } from '../../protocol/messages.ts'
import { UnreachableError } from '../rpc/errors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'

/**
 * @param cause an error with the `code` of the system call
 * @returns too_many if the gateway has no file descriptor or process left, which says nothing about the upstream; else
 * upstream_unavailable
 */
export function startError(definition: StdioDefinition, cause: unknown): GatewayError {
  const { name } = definition
  const { code } = cause as { readonly code?: string }
  const gatewayFault = (limit: string, what: string): GatewayError =>
    new GatewayError('too_many', `Upstream ${name} cannot start: ${what}. Retry in a second.`, {
      cause,
      data: { upstream: name, limit }
    })
  if (isOutOfDescriptors(cause)) return gatewayFault('descriptors', outOfDescriptors)
  if (isOutOfProcesses(cause)) return gatewayFault('systemProcesses', outOfProcesses)
  return new UnreachableError(
    'upstream_unavailable',
    `Upstream ${name} cannot be started: ${whyNot(definition, code)}.`,
    {
      cause,
      data: { upstream: name }
    }
  )
}

const isOutOfProcesses = (cause: unknown): boolean => (cause as { readonly code?: string }).code === 'EAGAIN'

/** Whether the gateway had no file descriptor or process left; the next start may succeed. */
export const isFaultOfGateway = (cause: unknown): boolean => isOutOfDescriptors(cause) || isOutOfProcesses(cause)

const outOfProcesses =
  'the system lets this gateway process start no more processes; raise their number (ulimit -u, TasksMax, or the ' +
  'pids limit of the container)'

// Names the command, never its arguments: those may carry secrets.
function whyNot({ command, cwd }: StdioDefinition, code: string | undefined): string {
  if (cwd !== undefined && !existsSync(cwd)) return `its working directory ${cwd} does not exist: correct cwd`
  if (code === 'ENOENT') return `the command ${command} was not found: install it, or correct the command or its PATH`
  if (code === 'EACCES') return `the command ${command} may not be executed: make it executable, or correct the command`
  return `the command ${command} failed with ${code ?? 'an unknown error'}: check its command, args, env and cwd`
}

interface StartRemedy {
  readonly exitCode?: number
  /** Expressions that must all match the same line of standard error. */
  readonly says?: readonly RegExp[]
  readonly remedy: string
}

const variable = /\b[A-Z][A-Z\d]*(?:_[A-Z\d]+)+\b/
const lacking = /\b(?:not set|unset|missing|required?|must be set)\b/i

const wherePrinted = ' (gatehouse check --connect prints the last line)'

/** For where the last line stands beside the error. @returns the text without the words that say where it is printed */
export const besideLastLine = (text: string): string => text.replace(wherePrinted, '')

/** The first entry whose conditions all hold is used. Shells and `env` exit with 126 and 127. */
export const startRemedies: readonly StartRemedy[] = [
  {
    exitCode: 127,
    remedy: 'Its command starts another that was not found: install that one, or correct command, args or PATH.'
  },
  {
    exitCode: 126,
    remedy: 'Its command starts another that may not be executed: make that one executable, or correct its args.'
  },
  {
    says: [/ModuleNotFoundError|No module named/],
    remedy: 'A Python module is missing: install it for the Python that its command starts, or correct its args.'
  },
  {
    says: [/Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/],
    remedy: 'A file or a package that it starts is missing: correct the path in its args, or install its packages.'
  },
  {
    says: [variable, lacking],
    remedy: 'It wants an environment variable that it does not get: set it under env of the upstream.'
  },
  {
    remedy:
      `If its standard error does not say why${wherePrinted}, run its command by hand with the variables of ` +
      'its env.'
  }
]

/** The process ended by itself. A pending request may have been executed. */
export class ProcessEndedError extends GatewayError {
  /** What the operator can do if the process ended before its server answered. */
  remedy = ''
  private readonly exitCode: number | null

  /** @param exitCode null if a signal ended the process */
  constructor(upstream: UpstreamName, message: string, exitCode: number | null) {
    super('upstream_lost', message, { data: { outcome: 'unknown', upstream } })
    this.exitCode = exitCode
    this.explain([])
  }

  /** @param lines what the process wrote to standard error before its server answered */
  explain(lines: readonly string[]): void {
    const found = startRemedies.find(
      ({ exitCode = this.exitCode, says }) =>
        exitCode === this.exitCode &&
        (says === undefined || lines.some((line) => says.every((each) => each.test(line))))
    )
    this.remedy = found?.remedy ?? ''
  }
}
