// Loads data of a page: it is loading, there, or refused, and is loaded again on demand or at an interval.

import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { list, problemOf } from './api.js'

/**
 * @template Value
 * @typedef {{ value: Value | undefined, problem: import('./api.js').Problem | undefined, isLoading: boolean, again: () => Promise<void>, more?: () => Promise<void> }} Loaded more: loads the next page of a list
 */

/**
 * @template Value
 * @param {(signal: AbortSignal) => Promise<Value>} ask
 * @param {readonly unknown[]} inputs `ask` is called again if one of them changes
 * @param {{ everyMs?: number }} [options] everyMs: loads again at this interval, while the page is visible
 * @returns {Loaded<Value>}
 */
export function useLoaded(ask, inputs, { everyMs } = {}) {
  const state = useSignal(
    /** @type {{ value?: Value | undefined, problem?: import('./api.js').Problem | undefined, isLoading: boolean }} */ ({
      isLoading: true
    })
  )
  const current = useRef(/** @type {AbortController | undefined} */ (undefined))
  const again = useCallback(async () => {
    current.current?.abort()
    const controller = new AbortController()
    current.current = controller
    state.value = { ...state.peek(), isLoading: true }
    try {
      const value = await ask(controller.signal)
      if (!controller.signal.aborted) state.value = { value, isLoading: false }
    } catch (error) {
      if (controller.signal.aborted) return
      state.value = { value: state.peek().value, problem: problemOf(error), isLoading: false }
    }
  }, inputs)
  useEffect(() => {
    state.value = { isLoading: true }
    void again()
    const isDue = () => document.visibilityState === 'visible' && !state.peek().isLoading
    const timer = everyMs && setInterval(() => isDue() && void again(), everyMs)
    return () => {
      clearInterval(timer)
      current.current?.abort()
    }
  }, inputs)
  const { value, problem, isLoading } = state.value
  return { value, problem, isLoading, again }
}

/**
 * Loads the first page of a list, and further pages with `more`.
 * @param {string} target
 * @param {readonly unknown[]} inputs the list is read again if one of them or the target changes
 * @param {{ everyMs?: number, perPage?: number }} [options]
 * @returns {Loaded<{ items: any[], isWhole: boolean }> & { more: () => Promise<void> }}
 */
export function useList(target, inputs = [], { perPage, ...options } = {}) {
  const pages = useRef(1)
  const loaded = useLoaded(
    (signal) => list(target, signal, { maxPages: pages.current, perPage }),
    [target, ...inputs],
    options
  )
  function more() {
    pages.current++
    return loaded.again()
  }
  return { ...loaded, more }
}
