// What a page has asked the gateway for: on its way, there, or refused; asked again when asked for or by the clock.

import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { ProblemError } from './api.js'

/**
 * @template Value
 * @typedef {{ value: Value | undefined, problem: import('./api.js').Problem | undefined, isLoading: boolean, again: () => Promise<void> }} Loaded
 */

/**
 * @template Value
 * @param {(signal: AbortSignal) => Promise<Value>} ask
 * @param {readonly unknown[]} inputs asked anew where one changes
 * @param {{ everyMs?: number }} [options] pages that nobody sees ask nothing
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
      if (!(error instanceof ProblemError)) throw error
      state.value = { value: state.peek().value, problem: error.problem, isLoading: false }
    }
  }, inputs)
  useEffect(() => {
    state.value = { isLoading: true }
    void again()
    const timer = everyMs && setInterval(() => document.visibilityState === 'visible' && void again(), everyMs)
    return () => {
      clearInterval(timer)
      current.current?.abort()
    }
  }, inputs)
  const { value, problem, isLoading } = state.value
  return { value, problem, isLoading, again }
}
