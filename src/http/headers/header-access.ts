/** Reads and writes the headers of a response. */
export interface HeaderAccess<Response> {
  set(response: Response, name: string, value: string): void
  get(response: Response, name: string): string | undefined
}
