// No nodes: the buckets of a short window are added one by one. The counterpart of src/range-sum/linear.ts.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "range_sum.h"

namespace millrace {

class Linear {
 public:
  static constexpr bool HAS_NODES = false;

  Linear(Word* words, const Shape& shape, Laps& laps) : words_(words), ring_(shape.ring), laps_(laps) {}

  Word charge(size_t, Word, uint32_t, Word, Word) { return CHARGED; }
  void takeOut(size_t, uint32_t, Word, Word) {}
  void prefetch(size_t, uint32_t) const {}

  /**
   * Relaxed reads are enough. The caller has loaded the admission word before, and everything that word
   * counts was in the buckets earlier.
   */
  uint64_t sum(size_t base, uint32_t slot, Word lap, uint32_t length) const {
    const size_t first = base + BUCKETS;
    const size_t end = first + slot + 1;
    if (length <= slot + 1) return sumOf(end - length, end, lap);
    const size_t ringEnd = first + ring_;
    return sumOf(first, end, lap) + sumOf(ringEnd - (length - slot - 1), ringEnd, lap - ONE_LAP);
  }

  int64_t find(size_t base, uint32_t slot, Word lap, uint32_t length, int64_t left) const {
    for (int64_t age = int64_t{length} - 1; age >= 0; age--) {
      const int64_t at = int64_t{slot} - age;
      const Word b = read(words_, base + BUCKETS + static_cast<size_t>(at < 0 ? at + ring_ : at));
      if ((b & LAP) != (at < 0 ? lap - ONE_LAP : lap)) continue;
      left -= b & COUNT;
      if (left < 0) return age;
    }
    return NONE;
  }

  /** Visits one slot for every SWEEP_LAPS ticks passed. Removes a count whose lap has left the ring. */
  void sweep(size_t base, Word from, int64_t hop, Word to) {
    const int64_t end = (int64_t{from} + hop) / SWEEP_LAPS;
    int64_t p = from / SWEEP_LAPS + 1;
    if (p > end) return;
    for (p = std::max(p, end - ring_ + 1); p <= end; p++) {
      const auto slot = static_cast<uint32_t>(p % ring_);
      const size_t at = base + BUCKETS + slot;
      const Word b = load(words_, at);
      if ((b & COUNT) == 0 || (b & LAP) == laps_.lapOf(slot, to)) continue;
      // Other threads may have moved the tick on. The tick is read after the bucket, so the bucket's charges
      // are of this tick or of an earlier one.
      if ((b & LAP) == laps_.lapOf(slot, read(words_, base + TICK))) continue;
      compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
  }

 private:
  /** The units of this lap in the words `from` to before `end`, four words at a time. */
  uint64_t sumOf(size_t from, size_t end, Word lap) const {
    uint64_t sum = 0;
    size_t i = from;
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
    // Plain vector loads, as in Table::waysNamed: x64 never tears an aligned word of them. A lane cannot
    // overflow: it adds at most a quarter of MOST_LINEAR + 1 counts of 22 bits.
    const __m128i laps = _mm_set1_epi32(static_cast<int>(LAP));
    const __m128i counts = _mm_set1_epi32(static_cast<int>(COUNT));
    const __m128i own = _mm_set1_epi32(static_cast<int>(lap));
    __m128i lanes = _mm_setzero_si128();
    for (; i + 4 <= end; i += 4) {
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words_ + i));
      const __m128i isOwn = _mm_cmpeq_epi32(_mm_and_si128(four, laps), own);
      lanes = _mm_add_epi32(lanes, _mm_and_si128(_mm_and_si128(four, counts), isOwn));
    }
    lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, _MM_SHUFFLE(1, 0, 3, 2)));
    lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, _MM_SHUFFLE(2, 3, 0, 1)));
    sum = static_cast<Word>(_mm_cvtsi128_si32(lanes));
#endif
    for (; i < end; i++) {
      const Word b = read(words_, i);
      sum += (b & LAP) == lap ? b & COUNT : 0;  // without a branch: which buckets count is hard to predict
    }
    return sum;
  }

  Word* const words_;
  const int64_t ring_;
  Laps& laps_;
};

}  // namespace millrace
