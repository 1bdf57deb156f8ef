// File descriptors: sockets, pipes and files all take one, and the process may have only so many.

/** @param error of whatever opens a socket, a file or a process */
export function isOutOfDescriptors(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return code === 'EMFILE' || code === 'ENFILE'
}

/** For messages: what is wrong, and what the operator can do. */
export const outOfDescriptors =
  'this gateway process has no file descriptor left; raise the number of open files that it may have (ulimit -n)'
