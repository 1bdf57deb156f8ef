// Reads an entry of an MCP registry (server.json): what a gateway can use of it, and which values the user must give.

import { text } from '../../text.js'

const said = text.addUpstream

/**
 * @typedef {{ key: string, label: string, hint?: string, isRequired: boolean, isSecret: boolean, usual: string,
 *   choices?: string[] }} Input
 * @typedef {Record<string, string>} Given values by the key of their input
 * @typedef {{ title: string, inputs: Input[], definition: (given: Given) => object }} Offer
 */

const inBraces = /\{([\w.-]+)\}/g

/** @returns {Input} */
const inputOf = (key, name, { description, isRequired, isSecret, default: usual, choices }) => ({
  key,
  label: name,
  hint: description,
  isRequired: isRequired === true,
  isSecret: isSecret === true,
  usual: String(usual ?? ''),
  choices
})

/**
 * A value of the entry: it is fixed, has placeholders, or must be filled in as a whole.
 * @param {string} key
 * @param {any} entry
 * @returns {{ inputs: Input[], textOf: (given: Given) => string }}
 */
function part(key, entry) {
  const { name, valueHint, value, variables = {} } = entry
  if (typeof value !== 'string')
    return { inputs: [inputOf(key, name ?? valueHint ?? key, entry)], textOf: (given) => given[key] ?? '' }
  const places = [...new Set([...value.matchAll(inBraces)].map(([, place = '']) => place))]
  const known = places.filter((place) => Object.hasOwn(variables, place))
  return {
    inputs: known.map((place) => inputOf(`${key} ${place}`, place, variables[place])),
    textOf: (given) => value.replace(inBraces, (whole, place) => given[`${key} ${place}`] ?? whole)
  }
}

/** The inputs and the values of headers or environment variables; empty values are left out. */
function named(prefix, entries = []) {
  const parts = entries.map((entry) => /** @type {const} */ ([entry.name, part(`${prefix} ${entry.name}`, entry)]))
  return {
    inputs: parts.flatMap(([, { inputs }]) => inputs),
    valuesOf: (given) =>
      Object.fromEntries(parts.map(([name, { textOf }]) => [name, textOf(given)]).filter(([, value]) => value !== ''))
  }
}

function argumentsOf(prefix, entries = []) {
  const parts = entries.map((entry, at) => /** @type {const} */ ([entry, part(`${prefix} ${at}`, entry)]))
  return {
    inputs: parts.flatMap(([, { inputs }]) => inputs),
    textsOf: (given) =>
      parts.flatMap(([{ type, name }, { textOf }]) => {
        const value = textOf(given)
        return value === '' ? [] : type === 'named' ? [name, value] : [value]
      })
  }
}

/** @returns {Offer} */
function remoteOffer({ url, headers, variables }) {
  const target = part('url', { value: url, variables })
  const sent = named('header', headers)
  return {
    title: url,
    inputs: [...target.inputs, ...sent.inputs],
    definition: (given) => ({ type: 'http', url: target.textOf(given), headers: sent.valuesOf(given) })
  }
}

/** By type of registry: the program that fetches and runs a package, and its own arguments. */
const runners = {
  npm: { command: 'npx', before: ['-y'], target: (name, version) => (version ? `${name}@${version}` : name) },
  pypi: { command: 'uvx', before: [], target: (name, version) => (version ? `${name}==${version}` : name) },
  oci: {
    command: 'docker',
    before: ['run', '-i', '--rm'],
    target: (name, version) => (version && !/[:@][^/]*$/.test(name) ? `${name}:${version}` : name)
  }
}

/** @returns {Offer} */
function packageOffer({ registryType, identifier, version, runtimeArguments, packageArguments, environmentVariables }) {
  const { command, before, target } = runners[registryType]
  const ofRunner = argumentsOf('runtime', runtimeArguments)
  const own = argumentsOf('argument', packageArguments)
  const variables = named('variable', environmentVariables)
  return {
    title: `${registryType} ${target(identifier, version)}`,
    inputs: [...ofRunner.inputs, ...own.inputs, ...variables.inputs],
    definition(given) {
      const env = variables.valuesOf(given)
      // A container does not inherit the environment of `docker`, so variables are passed as arguments.
      const passed = registryType === 'oci' ? Object.keys(env).flatMap((name) => ['-e', name]) : []
      const args = [...ofRunner.textsOf(given), ...passed, target(identifier, version), ...own.textsOf(given)]
      return { type: 'stdio', command, args: [...before, ...args], env }
    }
  }
}

/**
 * @param {string} given a server.json, or the answer of a registry that has it as `server`
 * @returns {{ name: string, offers: Offer[] }} name: a name for the upstream; offers: at least one
 * @throws {Error} that says what is wrong
 */
export function entryIn(given) {
  const parsed = JSON.parse(given)
  const { name = '', remotes = [], packages = [] } = parsed?.server ?? parsed ?? {}
  const offers = [
    ...remotes.filter(({ url }) => typeof url === 'string').map(remoteOffer),
    ...packages
      .filter(({ registryType, transport }) => registryType in runners && (transport?.type ?? 'stdio') === 'stdio')
      .map(packageOffer)
  ]
  if (offers.length === 0) throw new Error(said.noOffer)
  const own = String(name).split('/').at(-1) ?? ''
  return {
    name: own
      .toLowerCase()
      .replace(/[^a-z0-9_-]+/g, '-')
      .replace(/^[-_]+/, ''),
    offers
  }
}
