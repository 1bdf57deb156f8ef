// docs/providers: a page for each preset, from its data.

import { isSettled, type ProviderPreset } from '../src/config/auth/providers/preset.ts'
import { providerPresets, stepsFor } from '../src/config/auth/providers/presets.ts'

const words = {
  yes: 'yes',
  no: 'no',
  set: 'where it is set up so',
  preview: 'where it is set up so; its makers call it an experiment, a preview or early access'
} as const

const audienceWords = {
  url: 'the URL of the endpoint, in `aud`',
  audiences: 'a value of its own in `aud`, which stands under `audiences`',
  clients: 'its client; it has no `aud`',
  urlOrClients:
    'the URL of the endpoint, in `aud`, where the host asked by `resource`; otherwise its client, without `aud`'
} as const

const list = (items: readonly string[], mark: (at: number) => string): string =>
  items.map((item, at) => `${mark(at)} ${item}`).join('\n')

function pageOf(name: string, preset: ProviderPreset): string {
  const { title, unusable, issuer, audience, can, facts, example, sources, token, behindLogin } = preset
  const urls = {
    urls: '`{publicUrl}/t/{tenant}/mcp`, or `{publicUrl}/t/{tenant}/{endpoint}/mcp`',
    redirect: '`{publicUrl}/login/{tenant}/callback`',
    signedOut: '`{publicUrl}/login/{tenant}/session/end/success`'
  }
  const steps = stepsFor(preset.steps, urls)
  const needsFront = !isSettled(can.resource) || !(isSettled(can.registration) || isSettled(can.clientDocuments))
  const claims = Object.entries(token.claims ?? {}).map(
    ([key, value]) =>
      `| ${key} | ${[value]
        .flat()
        .map((each) => `\`${each}\``)
        .join(', ')} |`
  )
  return `# ${title.replace(/^any/, 'Any')}

*Written by \`npm run docs\` from src/config/auth/providers/${name}.ts; do not edit.*

${
  unusable ??
  `\`provider: ${name}\` under \`auth.issuers\`. \`gatehouse check\` prints the steps with the URLs of the tenant.

\`\`\`yaml
${example}
\`\`\`

## What to set there

${list(steps, (at) => `${at + 1}.`)}`
}

## What its tokens are like

| | |
|---|---|
| issuer | such as \`${issuer.example}\` |
| whom a token is for | ${audienceWords[audience]} |
| type \`at+jwt\` | ${token.requireTyp === false ? 'not needed' : 'needed'} |
${claims.map((row) => `${row}\n`).join('')}
${list(facts, () => '-')}

## What hosts find

| | |
|---|---|
| the parameter \`resource\` (RFC 8707) | ${words[can.resource]} |
| dynamic registration (RFC 7591) | ${words[can.registration]} |
| client ID metadata documents | ${words[can.clientDocuments]} |

${
  needsFront
    ? 'So the URL of the endpoint alone is not enough for a host. With the login front ([login.md](../login.md)) it is: hosts register and ask for tokens there, and people sign in here.'
    : 'With that, the URL of the endpoint alone is enough for a host.'
}

## Behind the login front

People sign in here for \`auth.login\`; whatever is said above of tokens and hosts does not matter then. \`gatehouse check\` prints these steps, too${
    name === 'generic' ? '' : ', where the issuer says that it is this product'
  }.

\`\`\`yaml
${behindLogin.example}
\`\`\`

${list(stepsFor(behindLogin.steps, urls), (at) => `${at + 1}.`)}

## Sources

${list(sources, () => '-')}
`
}

export const providerPages = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(providerPresets).map(([name, preset]) => [`docs/providers/${name}.md`, pageOf(name, preset)])
  )
