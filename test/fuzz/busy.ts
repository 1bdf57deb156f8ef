// `node --import loop-delay.ts busy.ts MS`: one turn of so many milliseconds of CPU, then a measurement.

const busyMs = Number(process.argv[2] ?? 0)
setTimeout(() => {
  const { user } = process.threadCpuUsage()
  let sum = 0
  while (process.threadCpuUsage().user - user < busyMs * 1_000) for (let n = 0; n < 100_000; n++) sum += n
  setTimeout(() => {
    process.kill(process.pid, 'SIGUSR2')
    setTimeout(() => {}, 1_000)
  }, 50)
}, 20)
