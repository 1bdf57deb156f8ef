// Lets the user call a tool with an own credential: a form made from its schema, its progress, its questions and its
// result.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { administrator, path, ProblemError, problemOf } from '../core/api.js'
import { html } from '../core/html.js'
import { eventsOf } from '../core/posted.js'
import { tenant } from '../core/route.js'
import { Dialog } from '../parts/dialog.js'
import { Field, JsonField, SchemaFields, startOf } from '../parts/form.js'
import { ProblemNote } from '../parts/notice.js'
import { JsonText, membersOf, wordsOf } from '../parts/schema.js'
import { duration } from '../parts/time.js'
import { text } from '../text.js'

const said = text.try
const maxMessages = 50

/** Credentials by tenant and endpoint, forgotten when the administrator signs out. @type {Map<string, string>} */
const credentials = new Map()
administrator.subscribe(() => credentials.clear())

export function TryDialog({ endpoint, tool, onClose }) {
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/try`
  const credential = useSignal(credentials.get(target) ?? '')
  const args = useSignal(startOf(tool.inputSchema))
  const isText = useSignal(membersOf(tool.inputSchema).length === 0)
  const run = useSignal(/** @type {any} */ ({ state: 'ready' }))
  const running = useRef(/** @type {AbortController | undefined} */ (undefined))
  useEffect(() => () => running.current?.abort(), [])

  /** @param {object} [answers] the answers to the questions of the server */
  async function send(answers = {}) {
    if (run.peek().state === 'running') return
    const controller = new AbortController()
    running.current = controller
    credentials.set(target, credential.value)
    let now = { state: 'running', progress: undefined, messages: /** @type {any[]} */ ([]), answer: undefined }
    run.value = now
    const take = (event, data) => {
      if (event === 'progress') now = { ...now, progress: data }
      else if (event === 'message') now = { ...now, messages: [...now.messages.slice(1 - maxMessages), data] }
      else if (event === 'answer') now = { ...now, state: 'done', answer: data }
      else if (event === 'problem') throw new ProblemError({ status: 0, title: '', ...data })
      run.value = now
    }
    const body = {
      tool: tool.name,
      arguments: args.value,
      ...(credential.value && { credential: credential.value }),
      ...answers
    }
    try {
      await eventsOf(target, body, take, controller.signal)
      if (now.state === 'running') run.value = { ...now, state: 'cut' }
    } catch (error) {
      if (controller.signal.aborted) run.value = { ...now, state: 'cancelled' }
      else run.value = { ...now, state: 'refused', problem: problemOf(error) }
    }
  }

  const { state, progress, messages = [], answer, problem } = run.value
  const isRunning = state === 'running'
  const asks = answer?.result?.resultType === 'input_required' ? answer.result : undefined
  const actions = isRunning
    ? html`<button type="button" class="danger" onClick=${() => running.current?.abort()}>${said.cancel}</button>`
    : html`<button type="submit" class="main" form="try">${said.run}</button>`
  return html`<${Dialog} title=${said.heading(tool.title ?? tool.name)} onClose=${onClose} actions=${actions} isWide>
    <p class="muted">${said.how}</p>
    <form
      id="try"
      class="fields"
      onSubmit=${(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <${Field} label=${said.credential} hint=${said.credentialHint}>
        ${(attributes) =>
          html`<input
            ...${attributes}
            type="password"
            autocomplete="off"
            value=${credential.value}
            onInput=${({ currentTarget }) => (credential.value = currentTarget.value.trim())}
          />`}
      <//>
      ${
        isText.value
          ? html`<${JsonField}
              label=${said.arguments}
              value=${args.peek()}
              onChange=${(value) => (args.value = value ?? {})}
            />`
          : html`<${SchemaFields}
              schema=${tool.inputSchema}
              value=${args.value}
              onChange=${(value) => (args.value = value)}
            />`
      }
      <label class="check"
        ><input
          type="checkbox"
          checked=${isText.value}
          onChange=${({ currentTarget }) => (isText.value = currentTarget.checked)}
        />
        <span>${said.asText}</span></label
      >
    </form>
    <section class="part" aria-live="polite" aria-label=${said.outcome}>
      ${isRunning && html`<${Progress} ...${progress ?? {}} />`}
      ${messages.map((each) => html`<p class="muted"><span class="mark">${each.level}</span> ${wordsOf(each.data)}</p>`)}
      ${['cut', 'cancelled'].includes(state) && html`<p class="note warn">${said.states[state]}</p>`}
      ${problem && html`<${ProblemNote} problem=${problem} />`}
      ${asks && html`<${Questions} asks=${asks} onAnswer=${send} />`}
      ${answer && !asks && html`<${Answer} answer=${answer} />`}
    </section>
  <//>`
}

function Progress({ progress, total, message }) {
  return html`<div class="progress">
    <progress aria-label=${said.running} value=${total === undefined ? undefined : progress} max=${total}></progress>
    <span
      >${message ?? said.running}${progress !== undefined && ` (${total === undefined ? progress : `${progress}/${total}`})`}</span
    >
  </div>`
}

/** The questions of a server that waits for answers. */
function Questions({ asks, onAnswer }) {
  const given = useSignal(/** @type {Record<string, any>} */ ({}))
  const questions = Object.entries(asks.inputRequests ?? {})
  const respond = (name, response) => {
    given.value = { ...given.value, [name]: response }
    if (questions.every(([each]) => given.value[each] !== undefined))
      void onAnswer({ inputResponses: given.value, requestState: asks.requestState })
  }
  return questions
    .filter(([name]) => given.value[name] === undefined)
    .map(
      ([name, request]) =>
        html`<${Question} key=${name} request=${request} onRespond=${(response) => respond(name, response)} />`
    )
}

function Question({ request: { method, params = /** @type {any} */ ({}) }, onRespond }) {
  const content = useSignal(startOf(params.requestedSchema))
  if (method !== 'elicitation/create') return html`<p class="note warn">${said.cannotAnswer(method)}</p>`
  const { message, mode, url, requestedSchema } = params
  const safe = typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? '')
  return html`<form
    class="card fields"
    onSubmit=${(event) => {
      event.preventDefault()
      onRespond({ action: 'accept', ...(mode !== 'url' && { content: content.value }) })
    }}
  >
    <h3>${said.asks}</h3>
    <p>${message}</p>
    ${
      mode === 'url'
        ? html`<p>
            ${said.opens}
            ${safe ? html`<a href=${url} target="_blank" rel="noopener noreferrer">${url}</a>` : html`<code>${wordsOf(url)}</code>`}
          </p>`
        : html`<${SchemaFields}
            schema=${requestedSchema ?? {}}
            value=${content.value}
            onChange=${(value) => (content.value = value)}
          />`
    }
    <div class="row">
      <button type="submit" class="main">${said.accept}</button>
      <button type="button" onClick=${() => onRespond({ action: 'decline' })}>${said.decline}</button>
      <button type="button" class="quiet" onClick=${() => onRespond({ action: 'cancel' })}>${said.dismiss}</button>
    </div>
  </form>`
}

function Answer({ answer: { status, requestId, ms, result, error } }) {
  const failed = error !== undefined || result?.isError === true
  return html`<div class="row">
      <h3>${said.outcome}</h3>
      <span class=${`mark ${failed ? 'bad' : 'good'}`}
        >${error ? said.refused : failed ? said.failed : said.succeeded}</span
      >
      <span class="muted">${said.facts(duration(ms), status, requestId)}</span>
    </div>
    ${
      error &&
      html`<div class="note bad">
        <p><strong>${error.message}</strong></p>
        ${error.code !== undefined && html`<p class="muted">${error.code} ${error.data?.reason}</p>`}
      </div>`
    }
    ${(Array.isArray(result?.content) ? result.content : []).map((block, at) => html`<${Block} key=${at} block=${block} />`)}
    ${result?.structuredContent !== undefined && html`<${JsonText} summary=${said.structured} value=${result.structuredContent} />`}
    ${(result ?? error) && html`<${JsonText} summary=${said.whole} value=${result ?? error} />`}`
}

/** Types that browsers show as images; not SVG, which may contain scripts. */
const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

function Block({ block }) {
  const { type, text: words, data, mimeType, resource, uri } = block ?? {}
  if (type === 'text') return html`<pre tabindex="0" class="said">${words}</pre>`
  if (type === 'image' && imageTypes.has(mimeType))
    return html`<img class="shown" src=${`data:${mimeType};base64,${data}`} alt=${said.image(mimeType)} />`
  if (type === 'resource' && typeof resource?.text === 'string')
    return html`<figure class="resource">
      <figcaption class="muted">${resource.uri}</figcaption>
      <pre tabindex="0">${resource.text}</pre>
    </figure>`
  if (type === 'resource_link') return html`<p><span class="mark">${said.link}</span> <code>${uri}</code></p>`
  return html`<p class="muted">${said.notShown(type, mimeType ?? resource?.mimeType)}</p>`
}
