// Decides one key: finds its way and decides on its cell.
#pragma once

#include "table.h"

namespace millrace {

/** `Algorithm` has the classes `Cells` and `Estimates`, as in algorithm.h. */
template <typename Algorithm>
class Decider {
 public:
  using Cells = typename Algorithm::Cells;
  using Estimates = typename Algorithm::Estimates;

  Decider(const Decider&) = delete;
  Decider(Word* words, const Shape& shape)
      : words_(words),
        shape_(shape),
        cells_(words, shape),
        table_(words, shape, cells_),
        estimates_(words, shape, cells_) {}

  Cells& cells() { return cells_; }
  Table<Cells>& table() { return table_; }
  Estimates& estimates() { return estimates_; }

  /**
   * Admits `cost` units (1 to `limit`) of the key, or returns FULL. Charges nothing and returns GONE if the
   * key has no way, or NEEDS_READING if its cell needs a newer reading. `way` is a hint or NO_WAY, and then
   * the way that decided.
   */
  Result decide(int64_t& way, Name name, Word cost, Word limit, const Reading& reading) {
    if (way != NO_WAY) {
      const Result result = cells_.attempt(static_cast<size_t>(way), name, cost, limit, reading);
      if (result != Result::UNDECIDED) return result;
    }
    // See `MOST_TRIES` in src/core/tries.ts. TypeScript then finds the damage, and refuses.
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      way = table_.findLive(name);
      if (way == NO_WAY) return Result::GONE;
      if (!cells_.enter(cells_.base(static_cast<size_t>(way)), reading)) return Result::NEEDS_READING;
      const Result result = cells_.decide(static_cast<size_t>(way), name, cost, limit, reading);
      if (result != Result::GONE) return result;  // GONE: the way got another key after it was found
    }
    return Result::NEEDS_READING;
  }

  /**
   * Whether a key that `findLive` has not found has no cell by another record either. While the first record
   * is the present one, there are no others. `current` is CURRENT from before the search: if it has changed,
   * another thread may have converted the key's cell meanwhile.
   */
  bool isAbsent(Word current) const {
    return shape_.record == 0 && isStill(words_, HEADER_CURRENT, current);
  }

 private:
  Word* const words_;
  const Shape& shape_;
  Cells cells_;
  Table<Cells> table_;
  Estimates estimates_;
};

}  // namespace millrace
