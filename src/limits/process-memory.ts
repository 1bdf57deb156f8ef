// How much memory a process may use: that of the container or machine, or of a worker, which shares it with others.

import { totalmem } from 'node:os'

/** The part of the memory of the container or machine that is used where `limits.memoryBytes` is not given. */
const defaultMemoryPart = 0.75
/** The part of the primary of several workers, in bytes: what it needs itself, and what waits to be read by workers. */
const primaryBytes = 100_663_296

/**
 * Of the container or machine, in bytes.
 * @param constrained 0 where the system knows of no containers (macOS, Windows)
 */
export const availableMemory = (constrained = process.constrainedMemory(), total = totalmem()): number =>
  constrained > 0 ? Math.min(constrained, total) : total

/** @param memoryBytes `limits.memoryBytes`. @returns the most that the process may use, in bytes */
export const memoryOfProcess = (memoryBytes: number | undefined, available = availableMemory()): number =>
  memoryBytes ?? Math.floor(available * defaultMemoryPart)

/** @returns the same for each of so many workers, which share it with their primary */
export const memoryOfWorker = (memoryBytes: number | undefined, workers: number): number =>
  Math.max(1, Math.floor((memoryOfProcess(memoryBytes) - primaryBytes) / workers))
