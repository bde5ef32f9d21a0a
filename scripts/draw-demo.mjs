// Runs the demo and draws its output as docs/demo.svg: `npm run dev -- demo:picture`, after a build.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify, stripVTControlCharacters } from 'node:util'

const MAIN = fileURLToPath(new URL('../cli/dist/main.js', import.meta.url))
const PICTURE = fileURLToPath(new URL('../docs/demo.svg', import.meta.url))

const COLUMN = 8.4 // of a monospaced font of 14 pixels
const LINE = 18
const MARGIN = 20
const BAR = 34
// The colours of the demo's output on a dark background; 39 is the default colour.
const COLOURS = { 31: '#ff7b72', 32: '#7ee787', 39: '#e6edf3' }

const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'demo'], {
  env: { ...process.env, FORCE_COLOR: '1' },
})
const lines = ['$ npm run demo', '', ...stdout.trimEnd().split('\n')]
const columns = Math.max(...lines.map((line) => stripVTControlCharacters(line).length))
const width = Math.ceil(columns * COLUMN) + 2 * MARGIN
const height = BAR + lines.length * LINE + MARGIN

const rows = lines.map(
  (line, i) => `<g transform="translate(${MARGIN} ${BAR + (i + 1) * LINE})">${drawn(line)}</g>`,
)
const lights = ['#ff5f57', '#febc2e', '#28c840'].map(
  (fill, i) => `<circle cx="${MARGIN + 6 + i * 20}" cy="17" r="6" fill="${fill}"/>`,
)
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>Output of millrace demo</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
${lights.join('')}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" xml:space="preserve">
${rows.join('\n')}
</g>
</svg>
`
await writeFile(PICTURE, svg)
console.log(`${PICTURE}: ${columns} columns, ${lines.length} lines`)

/** Draws a line as runs of one colour. Each has a fixed width, so that frames join in every font. */
function drawn(line) {
  let colour = COLOURS[39]
  let column = 0
  const runs = []
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with the escape character
  for (const part of line.split(/(\u001b\[\d+m)/)) {
    const code = /\[(\d+)m$/.exec(part)?.[1]
    if (code !== undefined) colour = COLOURS[code] ?? COLOURS[39]
    else if (part !== '') {
      const last = runs.at(-1)
      if (last?.colour === colour) last.text += part
      else runs.push({ colour, column, text: part })
      column += part.length
    }
  }
  return runs
    .filter(({ text }) => text.trim() !== '')
    .map(({ colour, column, text }) => {
      const at = (column * COLUMN).toFixed(1)
      const long = (text.length * COLUMN).toFixed(1)
      return `<text x="${at}" fill="${colour}" textLength="${long}" lengthAdjust="spacingAndGlyphs">${escaped(text)}</text>`
    })
    .join('')
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll(' ', '\u00a0')
}
