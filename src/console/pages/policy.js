// The policy of an endpoint: its rules in their order, their tests, and why a caller may or may not use something.

import { administrator, get, list, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { tenant } from '../core/route.js'
import { WithEndpoint } from '../parts/choice.js'
import { usePlan } from '../parts/plan.js'
import { text } from '../text.js'
import { Explain } from './policy/explain.js'
import { Rules } from './policy/rules.js'
import { Tests } from './policy/tests.js'
import { mayChange } from './upstreams.js'

const said = text.policy

const mayReadRules = () => administrator.value?.role !== 'viewer'

export function Page() {
  return html`<${WithEndpoint}
    >${(endpoint, choice) =>
      html`<div class="row">${choice}</div>
        ${
          mayReadRules()
            ? html`<${RulesAndTests} key=${endpoint.name} ...${{ endpoint }} />`
            : html`<p class="muted">${said.notForRole(administrator.value?.role ?? '')}</p>
                <${Explain} key=${endpoint.name} ...${{ endpoint }} />`
        }`}<//
  >`
}

function RulesAndTests({ endpoint }) {
  const id = tenant.value
  const target = path`/v1/tenants/${id}/endpoints/${endpoint.name}/policy-tests`
  const tests = useLoaded((signal) => list(target, signal), [target])
  const owner = useLoaded((signal) => get(path`/v1/tenants/${id}`, signal), [id])
  const { plan, dialog } = usePlan(() => Promise.all([tests.again(), owner.again()]))
  const { configuration, managedBy, version } = owner.value ?? {}
  const policy = configuration?.policy
  // Tests are part of a policy, so they can be kept only if there is one.
  const isKept = mayChange() && managedBy === 'api' && policy !== undefined
  function keep(test) {
    const tests = [...(policy.tests ?? []), test]
    plan({ [id]: { ...configuration, policy: { ...policy, tests } } }, { [id]: version })
  }
  return html`<${Rules} ...${{ endpoint }} />
    <${Tests} tests=${tests} />
    <${Explain} ...${{ endpoint }} onKeep=${isKept ? keep : undefined} />
    ${dialog}`
}
