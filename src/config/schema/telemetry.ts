// The configuration of what a collector is sent.

import { closedObject, defaulted, formatted, integer, record } from './parts.ts'
import { Type } from './type.ts'

export const TelemetrySchema = closedObject(
  {
    otlp: closedObject(
      {
        endpoint: formatted(
          'upstream-url',
          'Base URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`; `/v1/traces`, ' +
            '`/v1/metrics` and `/v1/logs` below it are sent to.'
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
    signals: defaulted(
      Type.Array(Type.Enum(['traces', 'metrics', 'logs']), {
        minItems: 1,
        uniqueItems: true,
        default: ['traces', 'metrics', 'logs'],
        description: 'What it is sent. `logs` are the lines of the log, one for each call among them.'
      })
    ),
    metricsEverySeconds: integer(1, 3_600, 60, 'How often metrics are sent.'),
    samplePercent: integer(
      0,
      100,
      100,
      'How many of a hundred traces that begin here are sent. Who calls with a trace of their own has decided that.'
    )
  },
  { title: 'telemetry' }
)
