// What can be wrong on the way from a host to an endpoint. docs/doctor.md is this table.

import { loginFaults } from './login-faults.ts'
import { networkFaults } from './network-faults.ts'
import { useFaults } from './use-faults.ts'

export const catalogue = { ...networkFaults, ...loginFaults, ...useFaults }

export type FaultCode = keyof typeof catalogue

type Facts = Readonly<Record<string, string | number>>

/** A fault of the catalogue that was found. */
export class Diagnosis extends Error {
  override readonly name = 'Diagnosis'
  readonly code: FaultCode
  readonly remedy: string

  constructor(code: FaultCode, facts: Facts = {}) {
    const { problem, remedy } = catalogue[code]
    super(filled(problem, facts))
    this.code = code
    this.remedy = filled(remedy, facts)
  }
}

const filled = (text: string, facts: Facts): string =>
  text.replace(/\{(\w+)\}/g, (all, name: string) => (Object.hasOwn(facts, name) ? String(facts[name]) : all))
