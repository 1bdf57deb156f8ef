// A picture of a page with 256 colours, those that it has most of: text and surfaces look the same, in two fifths of the bytes.

import { crc32, deflateSync, inflateSync } from 'node:zlib'

const most = 256
const signature = 8

/** Parts of a PNG, by their names; those of the same name together (PNG, third edition, section 5.3). */
function partsOf(png: Buffer): Map<string, Buffer> {
  const parts = new Map<string, Buffer>()
  for (let at = signature; at < png.length;) {
    const length = png.readUInt32BE(at)
    const name = png.toString('latin1', at + 4, at + 8)
    parts.set(name, Buffer.concat([parts.get(name) ?? Buffer.alloc(0), png.subarray(at + 8, at + 8 + length)]))
    at += length + 12
  }
  return parts
}

function part(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [named.length - 4, crc32(named)].map((value) => {
    const written = Buffer.alloc(4)
    written.writeUInt32BE(value)
    return written
  })
  return Buffer.concat([length ?? named, named, sum ?? named])
}

/** Undoes the filters of the lines (section 9.2), in place. */
function unfilter(lines: Buffer, stride: number, bytesPerPixel: number): void {
  const width = stride - 1
  for (let line = 0; line < lines.length; line += stride) {
    const filter = lines[line]
    for (let x = 0; x < width; x++) {
      const at = line + 1 + x
      const left = x < bytesPerPixel ? 0 : (lines[at - bytesPerPixel] ?? 0)
      const up = line === 0 ? 0 : (lines[at - stride] ?? 0)
      const corner = line === 0 || x < bytesPerPixel ? 0 : (lines[at - stride - bytesPerPixel] ?? 0)
      const guess = left + up - corner
      const [a, b, c] = [left, up, corner].map((each) => Math.abs(guess - each)) as [number, number, number]
      const paeth = a <= b && a <= c ? left : b <= c ? up : corner
      lines[at] = (lines[at] ?? 0) + ([0, left, up, (left + up) >> 1, paeth][filter ?? 0] ?? 0)
    }
  }
}

/** @param png of eight bits a channel, red, green and blue with or without alpha, as browsers make them of a page */
export function smallPng(png: Buffer): Buffer {
  const parts = partsOf(png)
  const head = Buffer.from(parts.get('IHDR') ?? '')
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)]
  const bytesPerPixel = head[9] === 6 ? 4 : 3
  const stride = width * bytesPerPixel + 1
  const lines = inflateSync(parts.get('IDAT') ?? '')
  unfilter(lines, stride, bytesPerPixel)
  const colourAt = (x: number, y: number): number => lines.readUIntBE(y * stride + 1 + x * bytesPerPixel, 3)
  const counts = new Map<number, number>()
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) counts.set(colourAt(x, y), (counts.get(colourAt(x, y)) ?? 0) + 1)
  const palette = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([colour]) => colour)
  const places = new Map(palette.map((colour, at) => [colour, at]))
  const pixels = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const colour = colourAt(x, y)
      if (!places.has(colour)) places.set(colour, nearest(colour, palette))
      pixels[y * (width + 1) + 1 + x] = places.get(colour) ?? 0
    }
  head[9] = 3
  return Buffer.concat([
    png.subarray(0, signature),
    part('IHDR', head),
    part('PLTE', Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
    part('IDAT', deflateSync(pixels, { level: 9 })),
    part('IEND', Buffer.alloc(0))
  ])
}

function nearest(colour: number, palette: readonly number[]): number {
  const apart = (other: number): number =>
    [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0)
  let best = 0
  for (const [at, other] of palette.entries()) if (apart(other) < apart(palette[best] ?? 0)) best = at
  return best
}
