/** The error of a command that did not go out. */
export class NotSent extends Error {
  constructor() {
    super('no connection to Redis')
  }
}
