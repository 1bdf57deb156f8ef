// The configuration of traces.

import { closedObject, defaulted, formatted, integer, record } from './parts.ts'
import { Type } from './type.ts'

export const TelemetrySchema = closedObject(
  {
    otlp: closedObject(
      {
        endpoint: formatted(
          'upstream-url',
          'Base URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`; spans go to ' +
            '`/v1/traces` below it.'
        ),
        headers: defaulted(
          record({ format: 'header-name' }, Type.String({ format: 'header-value' }), {
            default: {},
            description: 'Headers to send with them, such as a key of the collector.'
          })
        )
      },
      { description: 'The OpenTelemetry collector that they go to.' }
    ),
    samplePercent: integer(
      0,
      100,
      100,
      'How many of a hundred traces that begin here are sent. Who calls with a trace of their own has decided that.'
    )
  },
  { title: 'telemetry' }
)
