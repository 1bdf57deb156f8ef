// Google: people can sign in with it at the login front. Its access tokens are for Google itself.

import type { ProviderPreset } from './preset.ts'

export const google: ProviderPreset = {
  title: 'Google',
  unusable:
    'Its access tokens are opaque, and for Google only: use auth.login with https://accounts.google.com as its ' +
    'provider, which lets people sign in with Google.',
  issuer: {
    example: 'https://accounts.google.com',
    pattern: '^https://accounts\\.google\\.com$',
    form: 'https://accounts.google.com'
  },
  audience: 'clients',
  token: {},
  can: { resource: 'no', registration: 'no', clientDocuments: 'no' },
  steps: [],
  facts: [
    'Access tokens are opaque; who asks Google for their meaning (tokeninfo) is told a Google client, never an ' +
      'endpoint of the gateway. So they cannot be accepted for one.',
    'ID tokens are no access tokens: one that was made for any application of a client would let in.',
    'ID tokens name no groups: rules of policies are about subjects.',
    'It refuses the scope `offline_access`. The gateway asks with `access_type=offline` and `prompt=consent` in its ' +
      'place, so that it can ask again at each refresh whether a person may still come in.',
    'It has no endpoint for signing out: who signs out of the pages stays signed in at Google.'
  ],
  example: '',
  behindLogin: {
    steps: [
      'Google Cloud console > Google Auth Platform > Clients: create a client of type "Web application" with the ' +
        'redirect URI {redirect}.',
      'Audience: choose "Internal", so that only people of your organisation come in.'
    ],
    // Without the prompt there is a refresh token at the first sign-in of a person only.
    offline: { access_type: 'offline', prompt: 'consent' },
    promptForLogin: 'select_account',
    example: `login:
  provider:
    issuer: https://accounts.google.com
    clientId: 1234567890-abc.apps.googleusercontent.com
    clientSecret: "\${GOOGLE_CLIENT_SECRET}"`
  },
  sources: [
    'https://developers.google.com/identity/protocols/oauth2/web-server',
    'https://developers.google.com/identity/openid-connect/openid-connect'
  ]
}
