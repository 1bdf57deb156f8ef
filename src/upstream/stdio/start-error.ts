// Why a child process does not start, in words for the operator.

import { existsSync } from 'node:fs'
import { isOutOfDescriptors, outOfDescriptors } from '../../limits/descriptors.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { UnreachableError } from '../rpc/errors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'

/**
 * @param cause with the `code` of the system
 * @returns too_many where the gateway itself has no more of what a start takes, which says nothing of the upstream;
 * else upstream_unavailable
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
  if (code === 'EAGAIN') return gatewayFault('systemProcesses', outOfProcesses)
  return new UnreachableError(
    'upstream_unavailable',
    `Upstream ${name} cannot be started: ${whyNot(definition, code)}.`,
    {
      cause,
      data: { upstream: name }
    }
  )
}

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
