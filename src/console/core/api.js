// The client of the admin API: JSON in and out, problems (RFC 9457) as errors, lists page by page, ETags. The browser
// sends the cookie; each request adds the token of this page, without which the cookie is worth nothing.

import { signal } from '@preact/signals'
import { text } from '../text.js'

/**
 * @typedef {{ path?: string, message: string, remedy?: string }} Fault
 * @typedef {{ status: number, title: string, detail: string, remedy?: string, errors?: Fault[] }} Problem
 * @typedef {{ method?: string, body?: unknown, etag?: string | null, type?: string, signal?: AbortSignal }} Call
 * @typedef {{ name: string, role: string, tenants: string[] | null, hasLongSeries: boolean, traceUrl: string | null }} Administrator
 */

const tokenKey = 'gatehouse-console-token'
const tokenHeader = 'Gatehouse-Console'

/** Where the API is reached no more, this one is thrown, too: its status is 0. */
export class ProblemError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** Who is signed in; null: nobody; undefined: that is not known yet. */
export const administrator = signal(/** @type {Administrator | null | undefined} */ (undefined))
/** Whether a session ended by itself, and not by signing out. */
export const hasExpired = signal(false)

/** What stands between the parts is taken as it is, the parts as one segment each. @type {typeof String.raw} */
export const path = (strings, ...parts) =>
  String.raw({ raw: strings.raw }, ...parts.map((part) => encodeURIComponent(String(part))))

export const authorized = () => ({ [tokenHeader]: localStorage.getItem(tokenKey) ?? '' })

/** @param {Response} response @returns {Promise<ProblemError>} */
export async function problemIn(response) {
  const { status } = response
  const told = await response.json().catch(() => ({}))
  if (status === 401 && administrator.value) {
    administrator.value = null
    hasExpired.value = true
  }
  return new ProblemError({ title: response.statusText, detail: text.answerWas(status), ...told, status })
}

/**
 * What comes from the gateway, as a whole or not at all.
 * @template Value
 * @param {() => Promise<Value>} take
 * @param {AbortSignal | null} [signal] whose reason is thrown as it is
 * @returns {Promise<Value>}
 * @throws {ProblemError} where the connection is refused or breaks
 */
export async function received(take, signal) {
  try {
    return await take()
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ProblemError({ status: 0, title: '', ...text.noAnswer })
  }
}

/** @param {string} target @param {RequestInit} init */
export const fetched = (target, init) =>
  received(() => fetch(target, { ...init, credentials: 'same-origin', redirect: 'error' }), init.signal)

/** What to say of an error: one that is no `ProblemError` is a fault of the console. @returns {Problem} */
export function problemOf(error) {
  if (error instanceof ProblemError) return error.problem
  console.error(error)
  return { status: 0, title: '', detail: text.fault, remedy: text.faultWhy }
}

/**
 * @param {string} target
 * @param {Call} [call]
 * @returns {Promise<{ status: number, body: any, etag: string | null }>}
 * @throws {ProblemError}
 */
export async function request(target, { method = 'GET', body, etag, type = 'application/json', signal } = {}) {
  const response = await fetched(target, {
    method,
    headers: {
      ...authorized(),
      ...(body === undefined ? {} : { 'Content-Type': type }),
      ...(etag ? { 'If-Match': etag } : {})
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal })
  })
  if (!response.ok) throw await problemIn(response)
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return {
    status: response.status,
    body: await received(() => (isJson ? response.json() : response.text()), signal),
    etag: response.headers.get('etag')
  }
}

/**
 * What may be very long, for a file: the browser keeps it on the disk.
 * @param {string} target
 * @param {AbortSignal} signal
 * @returns {Promise<Blob>}
 * @throws {ProblemError}
 */
export async function download(target, signal) {
  const response = await fetched(target, { headers: authorized(), signal })
  if (!response.ok) throw await problemIn(response)
  return await received(() => response.blob(), signal)
}

/** @param {string} target @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = async (target, signal) => (await request(target, signal && { signal })).body

/** @param {string} target @param {unknown} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const post = async (target, body = {}, signal) =>
  (await request(target, { method: 'POST', body, ...(signal && { signal }) })).body

/** A list may have very many entries: beyond these the page says that there are more. */
const usualPages = 10
const entriesPerPage = 200

/**
 * The entries of a list, page after page; and what its last page says besides.
 * @param {string} target
 * @param {AbortSignal} [signal]
 * @param {{ maxPages?: number, perPage?: number | undefined }} [extent]
 * @returns {Promise<{ items: any[], isWhole: boolean, [member: string]: any }>}
 */
export async function list(target, signal, { maxPages = usualPages, perPage = entriesPerPage } = {}) {
  const items = []
  let cursor = ''
  let told = /** @type {any} */ ({})
  for (let pages = 0; pages < maxPages; pages++) {
    const query = `${target.includes('?') ? '&' : '?'}limit=${perPage}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
    told = await get(target + query, signal)
    items.push(...told.items)
    if (told.nextCursor === null) return { ...told, items, isWhole: true }
    cursor = told.nextCursor
  }
  return { ...told, items, isWhole: false }
}

/** Whether an earlier session of this browser still holds. */
export async function resume() {
  if (localStorage.getItem(tokenKey) === null) return void (administrator.value = null)
  try {
    administrator.value = await get('/v1/administrator')
  } catch (error) {
    administrator.value = null
    if (!(error instanceof ProblemError)) throw error
    hasExpired.value = error.problem.status === 401
    if (error.problem.status !== 401) throw error
  }
}

/**
 * @param {{ key: string } | { query: string }} by query: with which the identity provider has sent the browser back
 * @throws {ProblemError}
 */
export async function signIn(by) {
  const { body } = await request('/console/session', { method: 'POST', body: by })
  localStorage.setItem(tokenKey, body.token)
  hasExpired.value = false
  administrator.value = await get('/v1/administrator')
}

export async function signOut() {
  // Whoever leaves is gone from this page, whatever the gateway says.
  await request('/console/session', { method: 'DELETE' }).catch(() => undefined)
  localStorage.removeItem(tokenKey)
  hasExpired.value = false
  administrator.value = null
}
