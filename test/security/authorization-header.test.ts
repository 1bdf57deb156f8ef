// Attack: an Authorization header in a spelling that Node and we could read differently: twice, folded, padded, with
// two tokens.

import t from 'tap'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { readBearer } from '../../src/auth/bearer.ts'
import { GatewayError } from '../../src/protocol/messages.ts'
import { listen } from '../kit/listen.ts'

t.test('of all ways to write the header, one token is read from the plain ones only', async (t) => {
  const origin = await listen(
    t,
    createServer((request, response) => {
      try {
        response.end(`token=${readBearer(request.rawHeaders)}`)
      } catch (error) {
        response.end(error instanceof GatewayError ? error.code : 'fault')
      }
    })
  )
  const send = async (lines: string, target = '/') => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}\r\n`)
    const answer = await text(socket)
    return answer.startsWith('HTTP/1.1 400')
      ? 'node refuses'
      : answer.split('\r\n').find((line) => /^(token=|[a-z_]+$)/.test(line))
  }
  t.equal(await send('Authorization: Bearer abc\r\n'), 'token=abc')
  t.equal(await send('authorization: bearer abc\r\n'), 'token=abc')
  t.equal(await send('AUTHORIZATION:   Bearer abc  \r\n'), 'token=abc')
  t.equal(await send(''), 'token=undefined')
  t.equal(await send('Authorization: Bearer abc\r\nAuthorization: Bearer def\r\n'), 'invalid_request')
  t.equal(await send('Authorization: Bearer abc\r\nauthorization: Bearer abc\r\n'), 'invalid_request')
  t.equal(await send('Authorization: Bearer abc, Bearer def\r\n'), 'unauthenticated')
  t.equal(await send('Authorization: Basic YTpi\r\n'), 'unauthenticated')
  t.equal(await send('Authorization: Bearer\tabc\r\n'), 'unauthenticated')
  t.equal(await send('Authorization: Bearer\r\n abc\r\n'), 'node refuses')
  t.equal(await send('Authorization : Bearer abc\r\n'), 'node refuses')
  t.equal(await send('Authorization:\r\n'), 'unauthenticated')
  t.equal(
    await send('Cookie: access_token=abc\r\n', '/?access_token=abc&authorization=Bearer%20abc'),
    'token=undefined'
  )
})
