// The prompts of the reference server, and what completes their arguments.

import type { Prompt, PromptMessage } from '@modelcontextprotocol/sdk/types.js'
import { png } from './samples.ts'

interface Entry {
  readonly description: string
  readonly arguments?: Prompt['arguments']
  messages(args: Record<string, string>): PromptMessage[]
}

const user = (content: PromptMessage['content']): PromptMessage => ({ role: 'user', content })
const says = (text: string): PromptMessage => user({ type: 'text', text })
const required = (name: string, description: string) => ({ name, description, required: true })

export const prompts: Readonly<Record<string, Entry>> = {
  test_simple_prompt: { description: 'One message', messages: () => [says('This is a simple prompt for testing.')] },
  test_prompt_with_arguments: {
    description: 'One message with two arguments in it',
    arguments: [required('arg1', 'The first argument'), required('arg2', 'The second argument')],
    messages: ({ arg1, arg2 }) => [says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]
  },
  test_prompt_with_embedded_resource: {
    description: 'A resource and a message',
    arguments: [required('resourceUri', 'The URI that the resource gets')],
    messages: ({ resourceUri = '' }) => [
      user({
        type: 'resource',
        resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }
      }),
      says('Please process the embedded resource above.')
    ]
  },
  test_prompt_with_image: {
    description: 'An image and a message',
    messages: () => [user({ type: 'image', data: png, mimeType: 'image/png' }), says('Please analyze the image above.')]
  }
}

const words = ['paris', 'park', 'party', 'test', 'testing']

/** @returns the words that begin as the user did, for the arguments of prompts and templates alike */
export const completions = (value: string): string[] => words.filter((word) => word.startsWith(value))
