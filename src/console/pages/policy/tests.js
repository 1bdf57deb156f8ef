// The tests of the policies of an endpoint: the expected decisions, and whether they are made now.

import { html } from '../../core/html.js'
import { ListPart } from '../../parts/list.js'
import { text } from '../../text.js'

const said = text.policy

const callerText = (caller) =>
  Object.entries(caller)
    .map(([name, value]) => `${said.callerParts[name] ?? name} ${[value].flat().join(', ')}`)
    .join('; ') || said.anybody

const decided = (outcome) => (outcome === null ? said.cannotBeAsked : said.outcomes[outcome])

/** @param {{ tests: import('../../core/load.js').Loaded<any> }} props */
export const Tests = ({ tests }) =>
  html`<${ListPart}
    title=${said.tests}
    loaded=${tests}
    empty=${{ title: said.noTests, why: said.noTestsWhy }}
    beside=${html`<button type="button" disabled=${tests.isLoading} onClick=${tests.again}>${said.again}</button>`}
    keyOf=${({ of, place }) => `${of} ${place}`}
    textOf=${({ name, caller, sentence }) => `${name} ${callerText(caller)} ${sentence}`}
    columns=${[
      { title: said.who, cell: ({ caller }) => callerText(caller) },
      {
        title: said.what,
        isHead: true,
        cell: ({ name, arguments: args }) =>
          html`<code>${name}</code>${args !== undefined && html` <code>${JSON.stringify(args)}</code>`}`
      },
      { title: said.expected, cell: ({ expect }) => said.outcomes[expect] },
      {
        title: said.decided,
        cell: ({ holds, outcome }) => html`<span class=${`mark ${holds ? 'good' : 'bad'}`}>${decided(outcome)}</span>`
      },
      { title: said.because, isLong: true, cell: ({ sentence }) => sentence }
    ]}
  >
    ${
      tests.value?.items.length > 0 &&
      html`<p class=${`note ${tests.value.failed > 0 ? 'bad' : 'good'}`} role="status">
        ${said.testsFailed(tests.value.failed, tests.value.items.length)}
      </p>`
    }
  <//>`
