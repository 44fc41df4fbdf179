// Two clients by a URL that contend for a lock until the input ends. Tells now and then how often one of them was inside. Closes neither.
import { Holdfast } from 'holdfast'

const url = process.argv[2] ?? ''
const fences = []
let inside = 0
let isOver = false

async function contend(locks) {
  while (!isOver) {
    const hold = await locks.mutex('door').acquire({ lease: '20s' })
    if (++inside !== 1) throw new Error('two are inside together')
    if (hold.fence <= (fences.at(-1) ?? 0)) throw new Error('the fence has fallen')
    fences.push(hold.fence)
    await new Promise(setImmediate)
    inside--
    if (fences.length % 20 === 0) console.log(`inside ${fences.length} times`)
    await hold.release()
  }
}

process.stdin.on('end', () => {
  isOver = true
})
process.stdin.resume()
const clients = [await Holdfast.open(url), await Holdfast.open(url)]
await Promise.all([...clients, ...clients].map(contend))
console.log('over')
