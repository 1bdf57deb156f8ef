// Buffers of many kilobytes whose memory is given back at once. The engine gives it back when it collects them, those
// that were in use at two quick collections only with a full one; and it makes one for each 64 MiB of them, which holds
// up everybody.

/** The size below which many buffers share one block. */
const smallBytes = 16_384

/** @param bytes that nobody looks at any more: they are none from then on. Part of a block stays as it is */
export function freeBuffer({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= smallBytes && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
