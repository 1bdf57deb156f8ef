// Loaded before the gateway (node --import): the time of day of this process is wrong by so many milliseconds.

const shiftMs = Number(process.env['TEST_CLOCK_SHIFT_MS'] ?? 0)
const { now } = Date
Date.now = () => now() + shiftMs
