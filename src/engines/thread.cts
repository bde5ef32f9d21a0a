// What piscina loads. It loads by `require`, and a thread that is ended while it requires an ES module ends the whole process
// (Node.js 20.20: "v8::Module::IsGraphAsync must be used on an instantiated module"); one that imports it is only ended.
const loading = import('./worker.js')

/** `task` is a RingTask; without one a thread is only started. */
async function serve(task: unknown): Promise<void> {
  const worker = await loading
  if (task !== undefined) worker.serve(task as Parameters<typeof worker.serve>[0])
}

module.exports = serve
