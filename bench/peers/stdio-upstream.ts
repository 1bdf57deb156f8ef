// Process of its own: the same server over stdio, one message a line. argv: its era, and how many tools it has.

import { answerTo, type Era, type Message } from './mcp.ts'

const [era = 'legacy', tools = '3'] = process.argv.slice(2)
let rest = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (text: string) => {
  const lines = (rest + text).split('\n')
  rest = lines.pop() ?? ''
  let answers = ''
  for (const line of lines) {
    const message = JSON.parse(line) as Message
    if (message.id !== undefined && message.method !== undefined)
      answers += `${answerTo(message, era as Era, Number(tools))}\n`
  }
  if (answers !== '') process.stdout.write(answers)
})
