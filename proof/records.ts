import { closeSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import type { HistoryRecord } from './history.js'

const PIECE_BYTES = 2 ** 20

/** The records of a file. It is read in pieces: a long one does not fit into a string. */
export function* recordsOf(file: string): Generator<HistoryRecord> {
  const opened = openSync(file, 'r')
  try {
    const piece = Buffer.alloc(PIECE_BYTES)
    const decoder = new StringDecoder()
    let begun = ''
    for (;;) {
      const size = readSync(opened, piece)
      const lines = (begun + decoder.write(piece.subarray(0, size))).split('\n')
      begun = size === 0 ? '' : (lines.pop() ?? '')
      for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as HistoryRecord
      if (size === 0) return
    }
  } finally {
    closeSync(opened)
  }
}
