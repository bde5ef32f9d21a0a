// Mistakes in what processes share by a file, each of which a test notices that needs the addon.
// run: addon, full
import * as assert from 'uvu/assert'
import type { Edit } from '../explore/copy.js'
import { test } from '../native/addon-test.js'
import { isNoticedBy } from './package-copy.js'

const edit = (file: string, find: string, replace: string): Edit => ({
  file: `shared-file/${file}.js`,
  find,
  replace,
})

/** The test file below `build/test`, and the mistake. */
const mutants: Readonly<Record<string, [test: string, edit: Edit]>> = {
  'a file that a rule of any name may open': [
    'shared-file/names',
    edit('mismatch', 'isRuleName(words, rule.name)]', 'true]'),
  ],
  'a share that opens the file of another rule': [
    'shared-file/names',
    edit('mismatch', 'if (isRuleName(words, name))', 'if (name)'),
  ],
  'names compared by their start': [
    'shared-file/names',
    edit('rule-name', 'digestOf(name).every((word, i) =>', 'digestOf(name.slice(0, 40)).every((word, i) =>'),
  ],
  'a path not looked at again once its file is locked': [
    'shared-file/making',
    edit('lock', 'if (isStillAt(path, file))', 'if (file)'),
  ],
  'an unfinished file not looked at again once it is locked': [
    'shared-file/making',
    edit('create-file', 'if (!isStillAt(unfinished.path, unfinished))', 'if (!unfinished)'),
  ],
  'a hard link emptied': ['shared-file/refused', edit('create-file', 'if (nlink !== 1)', 'if (nlink < 1)')],
  'any unfinished file emptied': [
    'shared-file/refused',
    edit('create-file', 'if (!isAllZeros(fd))', 'if (size < 0)'),
  ],
  'holes left in a sparse copy': [
    'shared-file/sparse',
    edit('shared-file', 'if (isAlone)\n            fillHoles(files, path, fd, bytes);', ''),
  ],
  'a time that no decision can go by': [
    'shared-file/refused',
    edit('file-clock', 'checkTime(path, arena, nowMs);', ''),
  ],
  'a mapping kept at close': [
    'shared-file/closing',
    edit('shared-file', 'clock.note();\n            unmap();', 'clock.note();'),
  ],
  'a mapping kept where the file is refused': [
    'shared-file/closing',
    edit('shared-file', 'unmap();\n        throw error;', 'throw error;'),
  ],
  'no note of the wall clock at close': [
    'shared-file/clock',
    edit('shared-file', 'clock.note();\n            unmap();', 'unmap();'),
  ],
  'a boot known by one word of its name': [
    'shared-file/clock',
    edit('file-clock', 'return noted.every((word, i) =>', 'return noted.some((word, i) =>'),
  ],
  'a boot not known where one word of its name is 0': [
    'shared-file/clock',
    edit('file-clock', 'noted.every((word) => word === 0)', 'noted.some((word) => word === 0)'),
  ],
  'lost ways freed only where they were counted': [
    'shared-file/clock',
    edit('shared-file', ' || isSameBoot !== true', ''),
  ],
  'a wall clock believed that nobody vouched for before': [
    'shared-file/clock',
    edit('file-clock', 'machine.wallMs() + machine.wallErrorMs() - fileMs', 'machine.wallMs() - fileMs'),
  ],
  'a wall clock believed that nobody vouches for now': [
    'shared-file/clock',
    edit('file-clock', 'machine.wallMs() - machine.wallErrorMs() - doubles', 'machine.wallMs() - doubles'),
  ],
  'an opening given up that keeps the file open': [
    'shared-file/opening',
    edit('lock', 'if (locked === undefined)\n            closeSync(file.fd);', ''),
  ],
  'a process without descriptors told that its path is wrong': [
    'shared-file/opening',
    edit('open-file', 'LIMITS[code] ?? expected', 'expected'),
  ],
}

for (const [name, [file, mistake]] of Object.entries(mutants)) {
  test(`a test notices: ${name}`, async () => {
    assert.ok(await isNoticedBy(file, [mistake]), `${file} passes`)
  })
}

for (const file of new Set(Object.values(mutants).map(([file]) => file))) {
  test(`without a mistake it passes: ${file}`, async () => {
    assert.not(await isNoticedBy(file, []))
  })
}

test.run()
