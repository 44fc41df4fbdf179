import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from './sources.js'

/**
 * Compiles the code of an application, and fails with what the compiler says. The folder is inside
 * the package, so that `import 'holdfast'` leads to its own build.
 */
export async function expectCompiles(code: string, options: object = {}): Promise<void> {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache/types-'))
  try {
    writeFileSync(join(folder, 'code.ts'), code)
    const compilerOptions = { noEmit: true, ...options }
    const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['code.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const complaint = await new Promise<string>((resolve) => {
      execFile(process.execPath, [tsc, '-p', folder], (error, stdout, stderr) =>
        resolve(error ? `${stdout}${stderr}${error.message}` : ''),
      )
    })
    expect(complaint).toBe('')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
