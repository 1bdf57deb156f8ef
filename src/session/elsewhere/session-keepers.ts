// Which homes of a session keep its sessions at servers for the home that comes next. A version that does not know of
// them begins sessions of its own at the servers and leaves in the store what is kept: whoever comes after it would go
// on in sessions that know nothing of what was said meanwhile.

import { sessionKeeperKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Session } from '../sessions.ts'

export type SessionKeepers = ReturnType<typeof createSessionKeepers>

/** @param node this process */
export function createSessionKeepers(
  store: Pick<Store, 'get' | 'set'>,
  node: string,
  randomBytes: (size: number) => Buffer
) {
  // What cannot be read says nothing for its home.
  const read = (key: string, home: string): Promise<string | undefined> =>
    store.get(sessionKeeperKey(key, home)).catch(() => undefined)

  return {
    /**
     * Before this process becomes the home of the session, in place of one that is gone: says that it keeps, and
     * whether all before it have.
     * @throws GatewayError unavailable
     */
    async follow({ key, record: { firstHome } }: Session, gone: string, ttlMs: number): Promise<void> {
      const lapse = await read(key, gone)
      const hasKept = lapse !== undefined || firstHome === gone
      const own = hasKept ? (lapse ?? '') : randomBytes(9).toString('base64url')
      await store.set(sessionKeeperKey(key, node), own, { ttlMs })
    },
    /**
     * For this process, the home of the session.
     * @returns names the last home that kept nothing; '' where all have. What was kept under another is out of date
     */
    lapseOf: async (key: string): Promise<string> => (await read(key, node)) ?? ''
  }
}
