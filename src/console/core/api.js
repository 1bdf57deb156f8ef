// The client of the admin API: JSON in and out, problems (RFC 9457) as errors, lists page by page, ETags. The browser
// sends the session cookie; the gateway accepts it only with the token that this page adds to each request.

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

/** The error of all requests. Its status is 0 if the gateway was not reached. */
export class ProblemError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** The administrator who is signed in; null: nobody; undefined: not known yet. */
export const administrator = signal(/** @type {Administrator | null | undefined} */ (undefined))
/** Whether the last session expired, and did not end by signing out. */
export const hasExpired = signal(false)

/** A template tag for paths: each inserted part is encoded as one segment. @type {typeof String.raw} */
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
 * Runs a request, and turns every failure of the connection into a `ProblemError`.
 * @template Value
 * @param {() => Promise<Value>} take
 * @param {AbortSignal | null} [signal] its reason is thrown unchanged
 * @returns {Promise<Value>}
 * @throws {ProblemError} if the connection is refused or breaks
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

/** The problem to show for an error; any error but a `ProblemError` is a fault of the console. @returns {Problem} */
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
 * Downloads an answer that may be too long for memory: the browser keeps a blob on disk.
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

/** The most pages of a list that are read; the console then says that there are more entries. */
const usualPages = 10
const entriesPerPage = 200

/**
 * Reads the entries of a list page by page, and returns them with the other members of the last page.
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

/** Checks whether an earlier session of this browser is still valid. */
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
 * @param {{ key: string } | { query: string }} by query: the parameters that the identity provider added to the address
 * @throws {ProblemError}
 */
export async function signIn(by) {
  const { body } = await request('/console/session', { method: 'POST', body: by })
  localStorage.setItem(tokenKey, body.token)
  hasExpired.value = false
  administrator.value = await get('/v1/administrator')
}

export async function signOut() {
  // The user is signed out of this page even if the gateway cannot be reached.
  await request('/console/session', { method: 'DELETE' }).catch(() => undefined)
  localStorage.removeItem(tokenKey)
  hasExpired.value = false
  administrator.value = null
}
