// Finds the way of a key. The counterpart of src/memory/table.ts. Names are read relaxed, because they are
// only hints: a decision reads the name again after the way's admission word.
#pragma once

#include <bit>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "keyed_cells.h"

namespace millrace {

template <typename Cells>
class Table {
 public:
  Table(Word* words, const Shape& shape, const Cells& cells)
      : words_(words), shape_(shape), cells_(cells) {}

  /** The first way of the key's first set. */
  size_t firstSet(Word lo) const { return (uint64_t{lo} * shape_.sets >> 32) * WAYS_PER_SET; }

  /** The first way of the key's second set, which is never the first one. */
  size_t secondSet(size_t firstSet, Word hi) const {
    const size_t set = firstSet + WAYS_PER_SET * (1 + (uint64_t{hi} * (shape_.sets - 1) >> 32));
    const size_t end = size_t{shape_.sets} * WAYS_PER_SET;
    return set < end ? set : set - end;
  }

  /** The way that most keys have: the one in their first set that is searched first. */
  size_t homeOf(Name name) const { return firstSet(name.lo) + (name.lo & (WAYS_PER_SET - 1)); }

  /** A way of either set with the low half of the key's name, or NO_WAY. */
  int64_t guess(Name name) const {
    const size_t first = firstSet(name.lo);
    const int64_t way = guessIn(first, name.lo);
    return way != NO_WAY ? way : guessIn(secondSet(first, name.hi), name.lo);
  }

  /** A way of one set with the low half of the key's name, or NO_WAY. */
  int64_t guessIn(size_t set, Word lo) const {
    const Word found = waysNamed(set, lo);
    return found == 0 ? NO_WAY : static_cast<int64_t>(set) + std::countr_zero(found);
  }

  /**
   * The way that is LIVE and the key's, or NO_WAY. A way that is not LIVE may still hold the name of its last
   * key.
   */
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
  /**
   * A bit for each way of the set with the name `lo`. Compares all 16 names without a branch. The processor
   * mispredicts the end of a search loop for every third key, which costs as much as a third of a decision.
   */
  Word waysNamed(size_t set, Word lo) const {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
    // A plain vector load: x64 never tears an aligned word of it, and a stale name is a hint like any other.
    static_assert(WAYS_PER_SET == 16);
    const auto* names = reinterpret_cast<const __m128i*>(words_ + NAMES_AT + set);
    const __m128i name = _mm_set1_epi32(static_cast<int>(lo));
    const auto four = [&](int i) { return _mm_cmpeq_epi32(_mm_loadu_si128(names + i), name); };
    const __m128i low = _mm_packs_epi32(four(0), four(1));
    const __m128i high = _mm_packs_epi32(four(2), four(3));
    return static_cast<Word>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
#else
    Word found = 0;
    for (Word i = 0; i < WAYS_PER_SET; i++) found |= Word{read(words_, NAMES_AT + set + i) == lo} << i;
    return found;
#endif
  }

  Word* const words_;
  const Shape& shape_;
  const Cells& cells_;
};

}  // namespace millrace
