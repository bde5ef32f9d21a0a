// Deliberate mistakes in the code for shared files. Tests that need the addon must catch them. The full tests take
// every 8th mistake, `npm run test:long` all of them.
// run: addon, full, also-long
import * as assert from 'uvu/assert'
import type { Edit } from '../explore/copy.js'
import { test } from '../native/addon-test.js'
import { shareOf } from '../size.js'
import { isCaughtBy } from './package-copy.js'

const edit = (file: string, find: string, replace: string): Edit => ({
  file: `shared-file/${file}`,
  find,
  replace,
})

/** The test file below `build/test` that catches the mistake, and the mistake. */
const mutants: Readonly<Record<string, [test: string, edit: Edit]>> = {
  'a file opened by a rule of another name': [
    'shared-file/names',
    edit('mismatch', 'isRuleName(words, rule.name)]', 'true]'),
  ],
  'a share that opens the file of another rule': [
    'shared-file/names',
    edit('mismatch', 'if (isOfNames(arenas, names))', 'if (names)'),
  ],
  'rule names compared by their first characters': [
    'shared-file/names',
    edit('rule-name', 'digestOf(name).every((word, i) =>', 'digestOf(name.slice(0, 40)).every((word, i) =>'),
  ],
  'a path not checked again after its file is locked': [
    'shared-file/making',
    edit('lock', 'if (isStillAt(path, file))', 'if (file)'),
  ],
  'an unfinished file not checked again after it is locked': [
    'shared-file/making',
    edit('create-file', 'if (!isStillAt(unfinished.path, unfinished))', 'if (!unfinished)'),
  ],
  'a hard link that is overwritten': [
    'shared-file/refused',
    edit('create-file', 'if (nlink !== 1)', 'if (nlink < 1)'),
  ],
  'an unfinished file overwritten without checking its contents': [
    'shared-file/refused',
    edit('create-file', 'if (!isAllZeros(fd))', 'if (size < 0)'),
  ],
  'holes left in a sparse copy': [
    'shared-file/sparse',
    edit('shared-file', 'if (isAlone)\n            fillHoles(files, path, fd, bytes);', ''),
  ],
  'a time that no clock can continue from': [
    'shared-file/refused',
    edit('file-clock', 'checkTime(path, arenas, nowMs);', ''),
  ],
  'a mapping kept at close': [
    'shared-file/closing',
    edit('shared-file', 'clock.recordWallClock();\n            unmap();', 'clock.recordWallClock();'),
  ],
  'a mapping kept after the file is refused': [
    'shared-file/closing',
    edit('shared-file', 'unmap();\n        throw error;', 'throw error;'),
  ],
  'a wall clock not saved at close': [
    'shared-file/clock',
    edit('shared-file', 'clock.recordWallClock();\n            unmap();', 'unmap();'),
  ],
  'a boot ID compared by one word': [
    'shared-file/clock',
    edit('file-clock', 'return noted.every((word, i) =>', 'return noted.some((word, i) =>'),
  ],
  'a boot ID rejected because one word is 0': [
    'shared-file/clock',
    edit('file-clock', 'noted.every((word) => word === 0)', 'noted.some((word) => word === 0)'),
  ],
  'lost ways freed only if they were counted': [
    'shared-file/clock',
    edit('shared-file', ' || isSameBoot !== true', ''),
  ],
  'the error of the saved wall clock ignored': [
    'shared-file/clock',
    edit('file-clock', 'machine.wallMs() + machine.wallErrorMs() - fileMs', 'machine.wallMs() - fileMs'),
  ],
  'the error of the current wall clock ignored': [
    'shared-file/clock',
    edit('file-clock', 'machine.wallMs() - machine.wallErrorMs() - doubles', 'machine.wallMs() - doubles'),
  ],
  'a failed open that leaks its file descriptor': [
    'shared-file/opening',
    edit('lock', 'if (locked === undefined)\n            closeSync(file.fd);', ''),
  ],
  'a process without descriptors that blames the path': [
    'shared-file/opening',
    edit('open-file', 'LIMITS[code] ?? expected', 'expected'),
  ],
}

const share = shareOf(Object.entries(mutants), 8)
for (const [name, [file, mistake]] of share) {
  test(`a test catches: ${name}`, async () => {
    assert.ok(await isCaughtBy(file, [mistake]), `${file} passes`)
  })
}

for (const file of new Set(share.map(([, [file]]) => file))) {
  test(`passes without a mistake: ${file}`, async () => {
    assert.not(await isCaughtBy(file, []))
  })
}

test.run()
