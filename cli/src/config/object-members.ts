/** A member of an object as text, such as `"a": 1`, and the line where it begins. */
export interface Member {
  readonly text: string
  readonly line: number
}

const [NEWLINE, QUOTE, BACKSLASH, COMMA] = [0x0a, 0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * Splits the text of a JSON object into its members, without a parse of the whole: the object may be larger than
 * memory. It knows strings and brackets only; the parse of a member finds all other errors.
 */
export class ObjectMembers {
  readonly #longest: number
  #depth = 0
  #isInString = false
  #isEscaped = false
  #text = ''
  #line = 0
  #hasMembers = false
  #hasEnded = false

  /** `longest`: the most characters of a member. */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** Whether the text so far is a whole object. */
  get isWhole(): boolean {
    return this.#hasEnded
  }

  /** Whether the text so far ends in the middle of a string. */
  get isInString(): boolean {
    return this.#isInString
  }

  /** The member that has not ended. */
  get unfinished(): Member {
    return { text: this.#text, line: this.#line }
  }

  /** Whether a line can't be a part of this object: it begins another one, where none may be. */
  isBrokenBy(line: string): boolean {
    return /^\s*\{/.test(line) && !/[:,[]\s*$/.test(this.#text.slice(-100))
  }

  /**
   * Reads a part of the text, which is of one line. Returns the members that end in it, and where the object ends:
   * after the part if it goes on.
   * @throws RangeError for a member that is too long
   */
  read(part: string, line: number): { members: Member[]; end: number } {
    const members: Member[] = []
    let from = 0
    const take = (end: number) => {
      this.#add(part.slice(from, end), line)
      from = end + 1
    }
    const finish = (isLast: boolean) => {
      const isEmpty = this.#text === '' && isLast && !this.#hasMembers
      if (!isEmpty) members.push({ text: this.#text, line: this.#text === '' ? line : this.#line })
      this.#hasMembers = true
      this.#text = ''
    }
    for (let i = 0; i < part.length; i++) {
      const char = part.charCodeAt(i)
      if (this.#isInString) {
        if (char === NEWLINE)
          this.#isInString = false // JSON has none in a string: a quote is missing
        else if (this.#isEscaped) this.#isEscaped = false
        else if (char === BACKSLASH) this.#isEscaped = true
        else if (char === QUOTE) this.#isInString = false
      } else if (char === QUOTE) this.#isInString = true
      else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
        if (++this.#depth > 1) continue
        from = i + 1
        this.#line = line
      } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
        if (--this.#depth > 0) continue
        take(i)
        finish(true)
        this.#hasEnded = true
        return { members, end: i + 1 }
      } else if (char === COMMA && this.#depth === 1) {
        take(i)
        finish(false)
      }
    }
    if (this.#depth > 0) this.#add(part.slice(from), line)
    return { members, end: part.length }
  }

  #add(text: string, line: number): void {
    if (this.#text === '') {
      this.#text = text.trimStart()
      this.#line = line
    } else this.#text += text
    if (this.#text.length > this.#longest)
      throw new RangeError(`a member of more than ${this.#longest} characters`)
  }
}
