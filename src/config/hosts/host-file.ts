// Detects whether a text is the file of another host, such as an mcp.json, and no configuration of the gateway.

import { parse } from 'yaml'
import { plainJson } from './mcpjson.ts'
import { isOfOtherHost } from './other-hosts.ts'

/** Configurations are long, and few have any of these. */
const mayBeOne = /mcpServers|servers|extensions/

/** @param file its name says what it is written in */
export function isHostFile(text: string, file: string): boolean {
  if (/\.toml$/i.test(file)) return true
  if (!mayBeOne.test(text)) return false
  try {
    const isYaml = /\.ya?ml$/i.test(file)
    return isOfOtherHost(isYaml ? (parse(text) as unknown) : JSON.parse(plainJson(text)), isYaml ? 'yaml' : 'json')
  } catch {
    return false // It cannot be parsed: the reader of the configuration reports that.
  }
}
