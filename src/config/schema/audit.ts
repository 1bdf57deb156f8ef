// The audit log: where its records go, and what a tenant wants of it.

import type { TSchema } from 'typebox'
import { closedObject, defaulted, formatted, integer, record } from './parts.ts'
import { Type } from './type.ts'

const yesOrNo = (byDefault: boolean, description: string) =>
  defaulted(Type.Boolean({ default: byDefault, description }))

/** Not an object by itself, which would be there where it is not given. */
const optionalObject = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Optional(Type.Union([schema], { description }))

export const AuditSchema = closedObject(
  {
    store: yesOrNo(true, 'Keeps the records in the store, from where `gatehouse audit export` reads them.'),
    file: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Adds each record as a line of JSON to this file, too (relative to this one). It is opened anew for each ' +
          'addition, so that it can be rotated by renaming it.'
      })
    ),
    syslog: optionalObject(
      closedObject(
        {
          to: formatted(
            'syslog-address',
            'Where it listens: `tcp://HOST:PORT`, `tls://HOST:PORT`, or `unix:/PATH` of a socket of streams.'
          ),
          facility: integer(0, 23, 13, 'Of the entries (RFC 5424 section 6.2.1); 13 is log audit.')
        },
        { title: 'syslog server' }
      ),
      'Sends each record to a syslog server, too, as the message of an entry of RFC 5424.'
    ),
    otlp: optionalObject(
      closedObject(
        {
          url: formatted('upstream-url', 'Of the collector, such as `https://collector.example.com:4318/v1/logs`.'),
          headers: defaulted(
            record({ format: 'header-name' }, Type.String({ format: 'header-value' }), {
              default: {},
              description: 'Sent with every request, such as Authorization.'
            })
          )
        },
        { title: 'collector' }
      ),
      'Sends each record to an OpenTelemetry collector, too, as a log record over HTTP, in JSON.'
    ),
    retentionDays: integer(1, 3_650, 90, 'How long the store keeps records.'),
    megabytesPerTenant: integer(
      16,
      100_000,
      1_024,
      'Of one tenant in the store: beyond it the oldest records go first.'
    ),
    signingKey: Type.Optional(
      formatted(
        'ed25519-key',
        'The private key that signs records, in PEM (PKCS #8, Ed25519), by `${file:PATH}` or `${env:NAME}`. Make one ' +
          'with `openssl genpkey -algorithm ed25519`. Not given: one is made and kept in the store, so that whoever ' +
          'can write there can sign, too.'
      )
    )
  },
  { title: 'audit log' }
)

const secretNames = ['*password*', '*secret*', '*token*', '*key*', '*authorization*', '*credential*']

const redact = (of: string) =>
  defaulted(
    Type.Array(Type.String({ maxLength: 200 }), {
      maxItems: 200,
      default: secretNames,
      description: `Members whose values are left out of ${of}, at any depth: names in lower case; \`*\` is any text.`
    })
  )

export const LogSampleSchema = closedObject(
  {
    percent: integer(1, 100, 1, 'Of how many of a hundred tool calls.'),
    arguments: yesOrNo(true, 'Their arguments.'),
    results: yesOrNo(true, 'Their results.'),
    redact: redact('both')
  },
  { title: 'logSample' }
)

export const TenantAuditSchema = closedObject(
  {
    required: yesOrNo(
      false,
      'Lets no call through while records cannot be written or too many wait, and answers a call after its record is.'
    ),
    arguments: yesOrNo(
      false,
      'Records the arguments of calls, up to 16 KiB; their keyed hash is recorded in any case.'
    ),
    redact: redact('recorded arguments')
  },
  { description: 'What is recorded of this tenant.' }
)
