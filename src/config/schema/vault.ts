// The schema of `vault`: the keys under which what people give is kept.

import { closedObject, formatted } from './parts.ts'
import { Type } from './type.ts'

export const AwsKmsSchema = closedObject(
  {
    keyId: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: 'A symmetric key: its id or ARN, or an alias such as `alias/gatehouse`.'
    }),
    region: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9-]{1,64}$',
        patternErrorMessage: 'must be the name of a region, such as eu-central-1',
        description: 'Of the key. Not given: that of the environment (`AWS_REGION`).'
      })
    ),
    endpoint: Type.Optional(
      formatted(
        'kms-url',
        'Where the service is, such as an interface endpoint of a VPC. Not given: that of the region.'
      )
    )
  },
  { title: 'awsKms' }
)

export const VaultKeySchema = closedObject({
  id: Type.String({ minLength: 1, maxLength: 64, description: 'What the key is called, in the store.' }),
  key: Type.Optional(formatted('vault-key', '32 random bytes in base64, preferably as `${file:PATH}`.')),
  awsKms: Type.Optional(
    Type.Union([AwsKmsSchema], {
      description:
        'A key that never leaves AWS KMS, in place of `key`. Needs `npm install @aws-sdk/client-kms` beside the ' +
        'gateway; credentials come from where AWS keeps them.'
    })
  )
})

export const VaultSchema = closedObject(
  {
    keys: Type.Array(VaultKeySchema, {
      minItems: 1,
      maxItems: 8,
      description:
        'The first one is used for what is written; the others are for what was written before. Make one with ' +
        '`openssl rand -base64 32`.'
    })
  },
  { title: 'vault' }
)

export const optionalVault = Type.Optional(
  Type.Union([VaultSchema], {
    description:
      'Keys under which the accounts and secrets of people are kept ([connections.md](connections.md)). Needed by ' +
      'upstreams with `auth: { type: user }` or `userSecret`.'
  })
)
