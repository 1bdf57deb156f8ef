// Templates: htm turns them into nodes of preact. Inserted values are always text, never markup.

import htm from 'htm'
import { h } from 'preact'

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => import('preact').VNode<any>} */
export const html = /** @type {any} */ (htm.bind(h))
