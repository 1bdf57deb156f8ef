// How many inputs a property is tried with: `npm test` takes a fifth, `npm test -- --full` all.

const isFull = process.env['GATEHOUSE_TEST_FULL'] !== undefined

/** @param count those of the long form; at least 100 are left of it, where it has so many */
export const runs = (count: number): number => (isFull ? count : Math.max(Math.min(count, 100), Math.ceil(count / 5)))
