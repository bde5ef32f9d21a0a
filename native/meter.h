// The words of a cell whose counts are all in its admission word: the counterpart of src/algorithms/word/meter.ts.
#pragma once

#include "shape.h"

namespace millrace {

inline Word tickOf(Word w) { return w >> 1; }
inline bool isSettled(Word w) { return (w & 1) != 0; }
inline Word settled(Word tick) { return tick << 1 | 1; }
inline Word marked(Word tick) { return tick << 1; }

/** The number of ticks from that of `w` to the reading's: below 0 if the cell is ahead. */
inline int64_t ticksSince(const Shape& shape, Word w, const Reading& reading) {
  const int64_t since = shape.distance(reading.tick, tickOf(w));
  return 2 * since > shape.modulus ? since - shape.modulus : since;
}

}  // namespace millrace
