// Kill switches: lists what is stopped, and lets the user stop something after showing what that affects.

import { useSignal } from '@preact/signals'
import { get, list, path, request } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { tenant } from '../../core/route.js'
import { ConfirmDialog } from '../../parts/confirm.js'
import { Field, TextField } from '../../parts/form.js'
import { actionOf, ListPart } from '../../parts/list.js'
import { Moment } from '../../parts/moment.js'
import { Loading } from '../../parts/notice.js'
import { dateTime } from '../../parts/time.js'
import { text } from '../../text.js'
import { mayChange } from '../upstreams.js'

const said = text.kills

/** The parts that name a kill switch of each kind, in the order of its path in the API. */
const parts = {
  tool: ['upstream', 'tool'],
  upstream: ['upstream'],
  principal: ['issuer', 'subject'],
  key: ['key'],
  tenant: []
}
const folders = { tool: 'tools', upstream: 'upstreams', principal: 'principals', key: 'keys', tenant: 'tenant' }

const pathOf = (kill) =>
  [
    path`/v1/tenants/${tenant.value}/kills/`,
    folders[kill.kind],
    ...parts[kill.kind].map((part) => path`/${kill[part]}`)
  ].join('')

const nameOf = (kill) => parts[kill.kind].map((part) => kill[part]).join(' / ') || tenant.value

/** @param {{ onChange: () => Promise<unknown> }} props */
export function Kills({ onChange }) {
  const kills = useLoaded((signal) => list(path`/v1/tenants/${tenant.value}/kills`, signal), [])
  const stopping = useSignal(/** @type {any} */ (undefined))
  const resuming = useSignal(/** @type {any} */ (undefined))
  const after = () => Promise.all([kills.again(), onChange()])
  async function stop({ isUnseen, ...kill }) {
    const { body } = await request(pathOf(kill) + (isUnseen ? '?force=true' : ''), { method: 'PUT' })
    await after()
    return body
  }
  return html`<${ListPart}
    title=${said.title}
    loaded=${kills}
    empty=${{ title: said.none, why: said.noneWhy }}
    keyOf=${pathOf}
    columns=${[
      { title: said.kind, cell: ({ kind }) => said.kinds[kind] },
      { title: said.what, isHead: true, cell: nameOf },
      { title: said.others, cell: (each) => said.reach(each).map((line) => html`<div>${line}</div>`) },
      { title: said.since, cell: ({ at }) => html`<${Moment} at=${at} />` },
      { title: said.by, cell: ({ by, role }) => `${by} (${role})` },
      ...actionOf({
        label: said.resume,
        nameOf,
        isAllowed: mayChange(),
        onChoose: (each) => (resuming.value = each)
      })
    ]}
  >
    ${mayChange() && html`<${StopForm} onStop=${(kill) => (stopping.value = kill)} />`}
    ${
      stopping.value &&
      html`<${ConfirmDialog}
        title=${said.stopTitle(said.kinds[stopping.value.kind], nameOf(stopping.value))}
        label=${said.stop}
        done=${(put) => [said.stopped(nameOf(put)), ...said.reach(put)].join(' ')}
        act=${() => stop(stopping.value)}
        onClose=${() => (stopping.value = undefined)}
      >
        <${Hits} kill=${stopping.value} />
      <//>`
    }
    ${
      resuming.value &&
      html`<${ConfirmDialog}
        title=${said.resumeTitle(nameOf(resuming.value))}
        label=${said.resume}
        done=${said.resumed(nameOf(resuming.value))}
        isDangerous=${false}
        act=${() => request(pathOf(resuming.value), { method: 'DELETE' }).then(after)}
        onClose=${() => (resuming.value = undefined)}
      >
        <p>${said.resumeWhy}</p>
      <//>`
    }
  <//>`
}

function StopForm({ onStop }) {
  const kind = useSignal('tool')
  const values = {
    upstream: useSignal(''),
    tool: useSignal(''),
    issuer: useSignal(''),
    subject: useSignal(''),
    key: useSignal('')
  }
  const isUnseen = useSignal(false)
  const mayBeUnseen = kind.value === 'tool' || kind.value === 'principal'
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault()
    onStop({
      kind: kind.value,
      isUnseen: mayBeUnseen && isUnseen.value,
      ...Object.fromEntries(parts[kind.value].map((part) => [part, values[part].value]))
    })
  }
  return html`<form class="card stop" onSubmit=${submit}>
    <h3>${said.form}</h3>
    <${Field} label=${said.kind}>
      ${(attributes) =>
        html`<select ...${attributes} onChange=${({ currentTarget }) => (kind.value = currentTarget.value)}>
          ${Object.entries(said.kinds).map(([each, title]) => html`<option value=${each} selected=${each === kind.value}>${title}</option>`)}
        </select>`}
    <//>
    ${parts[kind.value].map((part) => html`<${TextField} key=${part} label=${said.parts[part]} hint=${said.hints[part]} value=${values[part]} />`)}
    ${
      mayBeUnseen &&
      html`<label class="check"
        ><input
          type="checkbox"
          checked=${isUnseen.value}
          onChange=${({ currentTarget }) => (isUnseen.value = currentTarget.checked)}
        />
        <span>${said.unseen}</span></label
      >`
    }
    <div><button type="submit" class="danger">${said.ask}</button></div>
  </form>`
}

const issuerOfKeys = 'urn:gatehouse:key'

/** Whether a switch affects a session or a caller. */
function isHit({ kind, issuer, subject, key }, caller) {
  if (kind === 'tenant') return true
  if (kind === 'principal') return caller.issuer === issuer && caller.subject === subject
  return kind === 'key' && caller.issuer === issuerOfKeys && caller.client === key
}

const sum = (values = []) => values.reduce((all, each) => all + each, 0)

/** Says what a switch affects: sessions that would end, and past calls that would have been refused. */
function Hits({ kill }) {
  const { kind } = kill
  const isOfCaller = kind === 'principal' || kind === 'key'
  const isOfUpstream = kind === 'tool' || kind === 'upstream'
  return html`<ul class="sentences">
    <li>${said.effects[kind]}</li>
    ${!isOfUpstream && html`<${EndedSessions} kill=${kill} />`}
    ${isOfCaller ? html`<${CallsOfCaller} kill=${kill} />` : html`<${CallsOfHour} kill=${kill} />`}
    <li>${said.everywhere}</li>
  </ul>`
}

function EndedSessions({ kill }) {
  const sessions = useLoaded((signal) => list(path`/v1/tenants/${tenant.value}/sessions`, signal), [])
  return html`<${Loading} loaded=${sessions}>
    ${({ items, isWhole }) => {
      const ended = items.filter((each) => isHit(kill, each)).length
      return html`<li class=${ended > 0 ? 'bad' : ''}>${said.sessions(ended, isWhole)}</li>`
    }}
  <//>`
}

function CallsOfCaller({ kill }) {
  const seen = useLoaded((signal) => list(path`/v1/tenants/${tenant.value}/principals`, signal), [])
  return html`<${Loading} loaded=${seen}>
    ${({ items }) => {
      const found = items.filter((each) => isHit(kill, each))
      const calls = sum(found.map((each) => each.calls))
      const [since] = found.map(({ firstSeenAt }) => firstSeenAt).sort()
      return html`<li class=${calls > 0 ? 'bad' : ''}>
        ${calls === 0 ? said.notSeen : said.callsSince(calls, dateTime(since))}
      </li>`
    }}
  <//>`
}

/** Calls of the last hour; those counted as `other` may also be affected. */
function CallsOfHour({ kill: { kind, upstream, tool } }) {
  const name = kind === 'tool' ? `${upstream}/${tool}` : upstream
  const only = name === undefined ? 'top=0' : `by=${kind}&name=${encodeURIComponent(name)}`
  const series = useLoaded((signal) => get(path`/v1/tenants/${tenant.value}/series?` + only, signal), [])
  return html`<${Loading} loaded=${series}>
    ${({ total, items }) => {
      const callsOf = (wanted) => sum(items.find((each) => each.name === wanted)?.calls)
      const [calls, others] = name === undefined ? [sum(total.calls), 0] : [callsOf(name), callsOf('other')]
      return html`<li class=${calls > 0 ? 'bad' : others > 0 ? 'warn' : ''}>${said.calls(calls, others)}</li>`
    }}
  <//>`
}
