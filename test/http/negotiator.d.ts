declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: Record<string, string | undefined> })
    mediaType(available: readonly string[]): string | undefined
  }
}
