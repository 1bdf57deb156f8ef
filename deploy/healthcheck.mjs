// HEALTHCHECK of the image, which needs no shell and no curl: 0 where the gateway is ready, else 1.
import { get } from 'node:http'

get(process.env.GATEHOUSE_HEALTH_URL ?? 'http://127.0.0.1:8080/health/ready', { timeout: 3000 }, (answer) => {
  answer.resume()
  process.exitCode = answer.statusCode === 200 ? 0 : 1
})
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
