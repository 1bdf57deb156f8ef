import t from 'tap'
import { maxTokenBytes, readBearer } from '../../src/auth/bearer.ts'
import { GatewayError } from '../../src/protocol/messages.ts'

const read = (...values: string[]) => {
  try {
    return readBearer(['Host', 'mcp.example.com', ...values.flatMap((value) => ['Authorization', value])])
  } catch (error) {
    return error instanceof GatewayError ? error.code : error
  }
}

t.test('no Authorization header is no token', async (t) => {
  t.equal(read(), undefined)
  t.equal(readBearer([]), undefined)
  t.equal(
    readBearer(['Proxy-Authorization', 'Bearer a', 'Cookie', 'authorization=a', 'X-Authorization', 'Bearer a']),
    undefined
  )
})

t.test('scheme and header name are case-insensitive, the token is not', async (t) => {
  t.equal(read('Bearer aB.c-d_e~f+g/h=='), 'aB.c-d_e~f+g/h==')
  t.equal(read('bearer aB'), 'aB')
  t.equal(read('BEARER  aB'), 'aB')
  t.equal(readBearer(['aUTHORIZATION', 'Bearer aB']), 'aB')
})

t.test('two headers are an invalid request, even where they agree', async (t) => {
  t.equal(read('Bearer a', 'Bearer a'), 'invalid_request')
  t.equal(readBearer(['authorization', 'Bearer a', 'X', 'Bearer b']), 'a')
  t.equal(read('Bearer a', ''), 'invalid_request')
})

t.test('anything but one token is refused', async (t) => {
  for (const value of [
    '',
    'Bearer',
    'Bearer ',
    'Bearera',
    'a',
    'Basic YTpi',
    'Bearer a, Bearer b',
    'Bearer a b',
    'Bearer\ta',
    'Bearer \ta',
    'Bearer a\t',
    'Bearer a\n',
    'Bearer a ',
    'Bearer =a',
    'Bearer a=b',
    'Bearer "a"',
    'Bearer ä',
    'Bearer a\0',
    'Bearer a;b',
    'Digest Bearer a',
    ' Bearer a',
    'ﬂBearer a'
  ]) {
    t.equal(read(value), 'unauthenticated', JSON.stringify(value))
  }
})

t.test('the longest token is 8 KiB', async (t) => {
  t.equal(read(`Bearer ${'a'.repeat(maxTokenBytes)}`), 'a'.repeat(maxTokenBytes))
  t.equal(read(`Bearer ${'a'.repeat(maxTokenBytes + 1)}`), 'unauthenticated')
  t.equal(read(`Bearer ${'a'.repeat(17_000)}`), 'unauthenticated')
  t.equal(read(`Bearer ${' '.repeat(17_000)}a`), 'unauthenticated')
})
