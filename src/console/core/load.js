// What a page has asked the gateway for: on its way, there, or refused; asked again when asked for or by the clock.

import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { list, problemOf } from './api.js'

/**
 * @template Value
 * @typedef {{ value: Value | undefined, problem: import('./api.js').Problem | undefined, isLoading: boolean, again: () => Promise<void>, more?: () => Promise<void> }} Loaded more: of a list that goes on
 */

/**
 * @template Value
 * @param {(signal: AbortSignal) => Promise<Value>} ask
 * @param {readonly unknown[]} inputs asked anew where one changes
 * @param {{ everyMs?: number }} [options] pages that nobody sees ask nothing, and nothing is asked twice at a time
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
 * A list, of which so many pages are read as somebody wishes for.
 * @param {string} target
 * @param {readonly unknown[]} inputs asked anew where one changes, or the target
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
