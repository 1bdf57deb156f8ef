// HEALTHCHECK of the image, which needs no shell and no curl: 0 where the gateway answers, else 1. Not readiness: what
// replaces an unhealthy container would replace every one while the store is away.
import { get } from 'node:http'

get(process.env.GATEHOUSE_HEALTH_URL ?? 'http://127.0.0.1:8080/health/live', { timeout: 3000 }, (answer) => {
  answer.resume()
  process.exitCode = answer.statusCode === 200 ? 0 : 1
})
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
