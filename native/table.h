// Where a key's way is: src/memory/table.ts. Names are read relaxed: they are only a hint, and whoever acts on a way
// reads them again after its admission word.
#pragma once

#include "cell.h"

namespace millrace {

class Table {
 public:
  static constexpr int64_t NO_WAY = -1;

  Table(Word* words, const Shape& shape, const Cells& cells) : words_(words), shape_(shape), cells_(cells) {}

  /** The first way of the key's first set. */
  size_t firstSet(Word lo) const { return (uint64_t{lo} * shape_.sets >> 32) * WAYS_PER_SET; }

  /** The first way of the key's second set, which is never the first one. */
  size_t secondSet(size_t firstSet, Word hi) const {
    const size_t set = firstSet + WAYS_PER_SET * (1 + (uint64_t{hi} * (shape_.sets - 1) >> 32));
    const size_t end = size_t{shape_.sets} * WAYS_PER_SET;
    return set < end ? set : set - end;
  }

  /** The first way of a set, from the key's home on, that bears the low half of its name, or NO_WAY. */
  int64_t guessIn(size_t set, Word lo) const {
    for (Word i = 0; i < WAYS_PER_SET; i++) {
      const size_t way = set + ((lo + i) & (WAYS_PER_SET - 1));
      if (read(words_, NAMES_AT + way) == lo) return static_cast<int64_t>(way);
    }
    return NO_WAY;
  }

  /** The way in which the key is LIVE, or NO_WAY: names may stand in a way's former life, too. */
  int64_t findLive(Name name) const {
    const size_t first = firstSet(name.lo);
    for (const size_t set : {first, secondSet(first, name.hi)}) {
      for (Word i = 0; i < WAYS_PER_SET; i++) {
        const size_t way = set + ((name.lo + i) & (WAYS_PER_SET - 1));
        if (read(words_, NAMES_AT + way) != name.lo) continue;
        if (cells_.isOf(load(words_, cells_.base(way) + ADM), way, name)) return static_cast<int64_t>(way);
      }
    }
    return NO_WAY;
  }

 private:
  Word* const words_;
  const Shape& shape_;
  const Cells& cells_;
};

}  // namespace millrace
