// The metrics of several worker processes as one text: each family once, with the samples of all of them, each with the
// number of its worker.

import { nextTurn } from '../../time/turns.ts'
import type { MetricsForm } from './metrics-text.ts'

interface Family {
  /** Comments on it: its help and its type. */
  readonly head: string[]
  readonly samples: string[]
}

/** Lines that are read in one turn of the event loop. */
const linesPerTurn = 5_000

/** @param texts that `metricsText` has made, by worker */
export async function mergedMetrics(
  texts: ReadonlyArray<{ readonly worker: number; readonly text: string }>,
  form: MetricsForm
): Promise<string> {
  const families = new Map<string, Family>()
  for (const { worker, text } of texts) {
    const label = `worker="${worker}"`
    let family: Family = { head: [], samples: [] }
    let isKnown = false
    let lines = 0
    for (let start = 0, end; (end = text.indexOf('\n', start)) !== -1; start = end + 1) {
      if (++lines % linesPerTurn === 0) await nextTurn()
      const line = text.slice(start, end)
      if (line.startsWith('# HELP ')) {
        const name = line.split(' ', 3)[2] ?? ''
        const known = families.get(name)
        isKnown = known !== undefined
        family = known ?? { head: [], samples: [] }
        families.set(name, family)
      }
      if (!line.startsWith('#')) family.samples.push(labelled(line, label))
      else if (!isKnown && line !== '# EOF') family.head.push(line)
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples])
  if (form === 'openMetrics') lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

/** A sample is `name value` or `name{labels} value`; what follows may have braces, too. */
function labelled(sample: string, label: string): string {
  const nameEnd = sample.search(/[{ ]/)
  const name = sample.slice(0, nameEnd)
  const rest = sample.slice(nameEnd)
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`
}
