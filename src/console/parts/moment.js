// Shows how long ago a moment was, with the exact time as its title.

import { html } from '../core/html.js'
import { ago, dateTime } from './time.js'

/** @param {{ at: string | number }} props RFC 3339, or epoch ms */
export const Moment = ({ at }) =>
  html`<time datetime=${new Date(at).toISOString()} title=${dateTime(at)}>${ago(at)}</time>`
