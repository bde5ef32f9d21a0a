// What piscina loads. It loads by `require`, and a thread that is ended while it requires an ES module ends the whole process
// (Node.js 20.20: "v8::Module::IsGraphAsync must be used on an instantiated module"); one that imports it is only ended.
import type { RingTask } from './worker.js' with { 'resolution-mode': 'import' }

const loading = import('./worker.js')

async function serve(task: RingTask | undefined): Promise<void> {
  const worker = await loading
  if (task !== undefined) worker.serve(task)
}

module.exports = serve
