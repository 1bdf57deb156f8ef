// What the message of an upstream takes up while it comes in, and while values are made of it.

import { JsonLimitError } from '../protocol/json-scan.ts'
import { bytesPerValue } from './limits.ts'
import { HeldMemory, type MemoryShare } from './memory.ts'

/** Bytes of a message in pieces that are part of what is counted for its request. */
const smallMessageBytes = 16_384
/** Bytes as they come, in one piece, as text and parsed: all of them are there for a moment. */
const messageFactor = 3

/** The memory of a message while it comes in. */
export class IncomingMemory {
  readonly share: MemoryShare
  private readonly held: HeldMemory

  constructor(share: MemoryShare) {
    this.share = share
    this.held = new HeldMemory(share)
  }

  /**
   * @param bytes of the message so far; 0: it was passed on
   * @returns false where there is no memory for so many; what it held before stays held
   */
  fits(bytes: number): boolean {
    return this.held.fit(sizeOf(bytes))
  }

  /**
   * It is long, and so many values are about to be made of it; until it was passed on.
   * @throws JsonLimitError where there is no memory for them
   */
  reserveValues(values: number): void {
    const bytes = values * bytesPerValue
    if (!this.held.take(bytes)) throw new JsonLimitError(this.refusal(bytes, 'holds what'))
  }

  /** Why so many bytes did not fit, as the end of a sentence about the message. */
  reason(bytes: number): string {
    return this.refusal(sizeOf(bytes), 'it')
  }

  private refusal(bytes: number, what: string): string {
    return this.share.refusal(bytes, what).message.replace(/\. Wait.*$/, '')
  }
}

const sizeOf = (bytes: number): number => (bytes > smallMessageBytes ? bytes * messageFactor : 0)
