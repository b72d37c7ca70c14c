// Keeps the direction of imports: a folder of src/ may import only what its row lists, and pure folders
// touch neither clock, randomness, process nor IO. Tests, src/testing, src/e2e and what lies in src/ itself
// (compose.ts and the entries) are exempt.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'

const FOUNDATION = ['model', 'failure']
const INFRASTRUCTURE = [...FOUNDATION, 'policy', 'platform']
const DOMAIN = [...INFRASTRUCTURE, 'config', 'records', 'logging']
const SYSTEMS = ['feed', 'exchange', 'memory']

/** Folder of src/ → the folders it may import, besides itself. */
const MAY_IMPORT = {
  model: [],
  failure: [],
  policy: FOUNDATION,
  platform: FOUNDATION,
  config: INFRASTRUCTURE,
  records: INFRASTRUCTURE,
  logging: INFRASTRUCTURE,
  feed: DOMAIN,
  half: [],
  exchange: [...DOMAIN, 'half'],
  memory: [...DOMAIN, 'half'],
  stage: [...DOMAIN, ...SYSTEMS],
  agent: [...DOMAIN, ...SYSTEMS, 'stage'],
  library: [...DOMAIN, ...SYSTEMS, 'stage', 'agent'],
  tui: [...DOMAIN, ...SYSTEMS, 'stage', 'agent'],
  cli: [...DOMAIN, ...SYSTEMS, 'stage', 'agent', 'library', 'tui'],
}
const PURE = /^(model|policy)\/|\/(plan|view)\//
const ADAPTERS = /(^|\/)(records\/(sqlite|postgres)|stage\/sources)\//
const IMPURE =
  /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.|\bperformance\.now\(|\bawait\b|\bsetTimeout\(|\bglobalThis\.crypto/
const IMPORT =
  /(?:import|export)\s[^'"]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|^import\s*['"]([^'"]+)['"]/gm

const problems = []
for (const file of globSync('src/**/*.{ts,tsx}')) {
  const path = file.split(sep).join('/').slice('src/'.length)
  const folder = path.split('/')[0]
  if (/\.(test|contract)\.tsx?$/.test(path) || ['testing', 'e2e'].includes(folder)) continue
  if (!path.includes('/')) continue // composition root and package entry
  const allowed = MAY_IMPORT[folder]
  if (!allowed) {
    problems.push(`src/${path}: folder ${folder}/ is not in the table of scripts/check-layers.mjs`)
    continue
  }
  const text = readFileSync(file, 'utf8')
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '')
  const isPure = PURE.test(path)
  if (isPure && IMPURE.test(code)) problems.push(`src/${path}: pure, but uses ${code.match(IMPURE)[0]}`)
  for (const match of text.matchAll(IMPORT)) {
    const specifier = match[1] ?? match[2] ?? match[3]
    if (!specifier.startsWith('.')) {
      if (isPure) problems.push(`src/${path}: pure, but imports ${specifier}`)
      continue
    }
    const target = normalize(join(dirname(path), specifier))
      .split(sep)
      .join('/')
    const targetFolder = target.split('/')[0]
    if (!target.includes('/')) problems.push(`src/${path}: imports the composition root ${target}`)
    else if (targetFolder !== folder && !allowed.includes(targetFolder))
      problems.push(`src/${path}: ${folder}/ may not import ${targetFolder}/`)
    if (ADAPTERS.test(target) && dirname(target) !== dirname(path))
      problems.push(`src/${path}: only compose.ts names the adapter ${target}`)
    if (isPure && !PURE.test(`${target}`) && !['failure'].includes(targetFolder))
      problems.push(`src/${path}: pure, but imports ${target}`)
  }
}
for (const problem of problems) process.stderr.write(`${problem}\n`)
if (problems.length > 0) process.exit(1)
process.stdout.write('layers: every import goes the right way\n')
