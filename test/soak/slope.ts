// How fast a figure grows, whatever single samples say.

/**
 * Theil and Sen: the median of the slopes between all pairs of samples, which a few that lie far off do not move.
 * @param samples of time and figure
 * @returns figure per unit of time; 0 for fewer than two
 */
export function slope(samples: ReadonlyArray<readonly [time: number, figure: number]>): number {
  const slopes = samples
    .flatMap(([time, figure], at) => samples.slice(at + 1).map(([later, next]) => (next - figure) / (later - time)))
    .toSorted((a, b) => a - b)
  return slopes[Math.floor(slopes.length / 2)] ?? 0
}
