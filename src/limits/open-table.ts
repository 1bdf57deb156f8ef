// What is open for a moment, by its number: calls that wait for their answer. V8's `Map` gets a new table each time its
// own is full of removed members, and the old one holds on to those of its time and to the next table, as in
// open-set.ts: with thirty calls in flight, each call is in one of them.

interface Link<T> {
  readonly id: number
  member: T
  next: Link<T> | undefined
}

/** There is a table for each session, and most sessions have one call at a time. */
const leastBuckets = 4

/** A table of open members: as much of a `Map` as is needed. Members come in no order. */
export interface OpenTable<T> extends Iterable<T> {
  readonly size: number
  get(id: number): T | undefined
  has(id: number): boolean
  /** Sets the member of this id, in place of the one before. */
  set(id: number, member: T): void
  /** @returns whether there was one */
  delete(id: number): boolean
}

class Buckets<T> implements OpenTable<T> {
  size = 0
  private buckets: Array<Link<T> | undefined> = emptyBuckets(leastBuckets)

  get(id: number): T | undefined {
    return this.find(id)?.member
  }

  has(id: number): boolean {
    return this.find(id) !== undefined
  }

  set(id: number, member: T): void {
    const known = this.find(id)
    if (known !== undefined) return void (known.member = member)
    if (++this.size > this.buckets.length) this.grow()
    const place = this.placeOf(id)
    this.buckets[place] = { id, member, next: this.buckets[place] }
  }

  delete(id: number): boolean {
    const place = this.placeOf(id)
    let before: Link<T> | undefined
    let link = this.buckets[place]
    while (link !== undefined && link.id !== id) {
      before = link
      link = link.next
    }
    if (link === undefined) return false
    if (before === undefined) this.buckets[place] = link.next
    else before.next = link.next
    // One that has become old holds nothing that is younger.
    link.next = undefined
    this.size--
    return true
  }

  *[Symbol.iterator](): Generator<T> {
    for (const first of [...this.buckets])
      for (let link = first; link !== undefined; link = link.next) yield link.member
  }

  private find(id: number): Link<T> | undefined {
    let link = this.buckets[this.placeOf(id)]
    while (link !== undefined && link.id !== id) link = link.next
    return link
  }

  private grow(): void {
    const before = this.buckets
    this.buckets = emptyBuckets(before.length * 2)
    for (const first of before) {
      for (let link = first; link !== undefined;) {
        const { next } = link
        const place = this.placeOf(link.id)
        link.next = this.buckets[place]
        this.buckets[place] = link
        link = next
      }
    }
    before.fill(undefined)
  }

  /** The length is a power of two; ids may lie beyond 32 bits. */
  private placeOf(id: number): number {
    return (id | 0) & (this.buckets.length - 1)
  }
}

const emptyBuckets = <T>(length: number): Array<T | undefined> => Array.from({ length }, () => undefined)

export const createOpenTable = <T>(): OpenTable<T> => new Buckets<T>()
