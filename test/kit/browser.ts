// A browser without a screen: it keeps cookies as RFC 6265 says, follows redirects, and presses the buttons of forms.

interface Cookie {
  readonly value: string
  readonly path: string
  readonly origin: string
}

export interface Landing {
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  /** Empty where the browser was sent to the client's redirect URI. */
  readonly html: string
}

export function browser() {
  const jar = new Map<string, Cookie>()

  function cookiesFor(url: URL): string {
    const matching = [...jar].filter(
      ([, { path, origin }]) =>
        origin === url.origin && (url.pathname === path || url.pathname.startsWith(path.replace(/\/?$/, '/')))
    )
    return matching.map(([id, { value }]) => `${id.split('|')[0]}=${value}`).join('; ')
  }

  function keep(url: URL, lines: readonly string[]): void {
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';').map((each) => each.trim())
      const [name = ''] = pair.split('=', 1)
      const path = attributes.find((each) => /^path=/i.test(each))?.slice(5) ?? '/'
      const isOver = attributes.some((each) => /^(max-age=0|expires=thu, 01 jan 1970)/i.test(each))
      const id = `${name}|${path}|${url.origin}`
      if (isOver) jar.delete(id)
      else jar.set(id, { value: pair.slice(name.length + 1), path, origin: url.origin })
    }
  }

  /** @param stopAt redirects that begin so are not followed: they are the client's */
  async function go(address: string, stopAt: string, init: RequestInit = {}): Promise<Landing> {
    let url = new URL(address)
    let next = init
    for (let hops = 0; hops < 20; hops++) {
      const response = await fetch(url, {
        ...next,
        redirect: 'manual',
        headers: { accept: 'text/html', ...next.headers, cookie: cookiesFor(url) }
      })
      keep(url, response.headers.getSetCookie())
      const location = response.headers.get('location')
      const { status, headers } = response
      if (location === null) return { url, status, headers, html: await response.text() }
      await response.body?.cancel()
      url = new URL(location, url)
      if (url.href.startsWith(stopAt)) return { url, status, headers, html: '' }
      next = {}
    }
    throw new Error('redirects without end')
  }

  return {
    go,
    /** Presses the button of the first form whose action ends so. */
    async press({ url, html }: Landing, action: string, stopAt: string): Promise<Landing> {
      const found = [...html.matchAll(/<form method="post" action="([^"]+)"/g)].map(([, each = '']) => each)
      const target = found.find((each) => each.endsWith(action))
      if (target === undefined) throw new Error(`no form for ${action} in: ${html}`)
      const headers = { origin: url.origin, 'content-type': 'application/x-www-form-urlencoded' }
      return await go(new URL(target, url).href, stopAt, { method: 'POST', headers, body: '' })
    }
  }
}
