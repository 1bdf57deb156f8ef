// A sum that all who use one key add to, with a limit for it. The key is looked up once and not at each movement, of
// which a request makes several.

export interface Sum {
  amount: number
}

/** May change while sums are counted for it. */
export interface SumLimit {
  amount: number
}

export class SharedSum {
  private readonly most: SumLimit
  /** The owner of the limit, as it reads in a sentence. */
  readonly whose: string
  private readonly sums: Map<string, Sum>
  private readonly key: string
  private sum: Sum = { amount: 0 }

  /** @param sums by key: those above 0 */
  constructor(sums: Map<string, Sum>, key: string, most: SumLimit, whose: string) {
    this.sums = sums
    this.key = key
    this.most = most
    this.whose = whose
  }

  get limit(): number {
    return this.most.amount
  }

  /** @returns whether so much may be added */
  has(more: number): boolean {
    return this.current().amount + more <= this.most.amount
  }

  /** Whatever the limit says. @param more negative: it is given back */
  add(more: number): void {
    const sum = this.current()
    const before = sum.amount
    sum.amount = Math.max(0, before + more)
    if (before === 0 && sum.amount > 0) this.sums.set(this.key, sum)
    else if (sum.amount === 0) this.sums.delete(this.key)
  }

  /** One of 0 may have given way to that of another user of the key. */
  private current(): Sum {
    if (this.sum.amount === 0) this.sum = this.sums.get(this.key) ?? this.sum
    return this.sum
  }
}
