// Runs several test files in one process, one after the other: what they import is loaded and compiled once. The files
// are in the environment because tap names the folders of a test by the arguments.

// Before modules that keep a reference to `Date.now`: some files move that clock.
import '../test/kit/moving-clock.ts'

for (const file of JSON.parse(process.env['GATEHOUSE_TEST_FILES'] ?? '[]') as string[]) await import(`../${file}`)
