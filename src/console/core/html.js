// Templates: htm makes nodes of preact. What is put into them is text, never markup.

import htm from 'htm'
import { h } from 'preact'

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => import('preact').VNode<any>} */
export const html = /** @type {any} */ (htm.bind(h))
