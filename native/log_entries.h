// The entries of a sliding log. The counterpart of src/algorithms/log/log-entries.ts and log-entry.ts. An entry is
// found by its index in the arena.
#pragma once

#include <algorithm>
#include <vector>

#include "shape.h"

namespace millrace {

/** Offsets in a cell, after its head. */
inline constexpr size_t HINT = BUCKETS;
inline constexpr size_t REFUNDS_AT = BUCKETS + 1;
inline constexpr size_t PERIOD = BUCKETS + 2;
inline constexpr size_t ENTRIES = BUCKETS + WORDS_BEFORE_ENTRIES;

class LogEntries {
 public:
  LogEntries(Word* words, const Shape& shape)
      : words_(words), shape_(shape), length_(shape.units), window_(shape.buckets) {
    places_.reserve(length_);
    written_.reserve(length_);
  }

  static bool counts(Word entry) { return (entry & ENTRY_COUNTS) != 0; }

  /** The ticks from an entry's to `tick`, as its 28 bits tell: below 0 if the entry is ahead. */
  static int32_t ageOf(Word entry, Word tick) {
    const Word age = (tick - (entry >> ENTRY_TICK_SHIFT)) & (ENTRY_TICKS - 1);
    return static_cast<int32_t>(age) - (age >= ENTRY_TICKS - MOST_AHEAD ? static_cast<int32_t>(ENTRY_TICKS) : 0);
  }

  /** Whether a unit of the entry is in the window that ends in tick e. */
  bool isIn(Word entry, Word e) const { return counts(entry) && ageOf(entry, e) < window_; }

  /**
   * Charges up to `cost` entries that are free in tick e, with this date. Returns how many, or -1 if the cell's
   * tick has moved on. `undo` takes them out.
   */
  int64_t chargeFree(size_t base, Word e, Word cost, Word date) {
    const Word from = read(words_, base + HINT);  // relaxed: it only says where to begin
    Word place = from < length_ ? from : 0;
    forget();
    for (Word looked = 0; looked < length_ && written_.size() < cost; looked++) {
      const size_t at = base + ENTRIES + place;
      for (Word tries = 0;; tries++) {
        if (tries == MOST_TRIES) return -1;
        const Word entry = readInOrder(words_, at);
        if (isIn(entry, e)) break;
        if (isLate(base, e)) return -1;
        const Word next = charged(entry, date);
        if (compareExchange(words_, at, entry, next) != entry) continue;
        places_.push_back(at);
        written_.push_back(next);
        break;
      }
      place = place + 1 < length_ ? place + 1 : 0;
    }
    if (!written_.empty()) write(words_, base + HINT, place);
    return static_cast<int64_t>(written_.size());
  }

  /** Takes the last charge out, except for what a refund by key has taken. Returns the number of units. */
  Word undo() {
    Word taken = 0;
    for (size_t i = 0; i < written_.size(); i++) taken += clear(places_[i], written_[i]) ? 1 : 0;
    forget();
    return taken;
  }

  /** The refunds by key so far, before a charge. In order: a later refund may take the charge. */
  Word refunds(size_t base) const { return readInOrder(words_, base + REFUNDS_AT); }

  /** The receipt of the last charge, which had read REFUNDS_AT before it. */
  Word receipt(size_t base, Word refunds, bool isLater) const {
    const auto place = static_cast<Word>(places_.front() - base - ENTRIES);
    return refunds << RECEIPT_REFUNDS_SHIFT | place << RECEIPT_PLACE_SHIFT | Word{isLater};
  }

  /** Calls `found(age)` for each unit that is younger than `length` ticks in tick e. */
  template <typename Found>
  void eachAge(size_t base, Word e, int64_t length, const Found& found) const {
    for (size_t at = base + ENTRIES; at < base + ENTRIES + length_; at++) {
      const Word entry = read(words_, at);
      if (!counts(entry)) continue;
      const int32_t age = ageOf(entry, e);
      if (age < length) found(age);
    }
  }

  /**
   * Before a cell's tick moves from `tick` to this reading. Clears the entries of a cell that has rested for a
   * whole period: see "A sweep" in sliding-log.ts.
   */
  void beginPeriod(size_t base, Word tick, double nowMs) {
    const auto period = periodOf(nowMs);
    const auto before = static_cast<int32_t>(read(words_, base + PERIOD));
    if (before == period) return;
    for (size_t at = base + ENTRIES; int64_t{period} - before > 1 && at < base + ENTRIES + length_; at++) {
      const Word entry = load(words_, at);
      if (load(words_, base + TICK) != tick) return;
      if (load(words_, base + PERIOD) != static_cast<Word>(before)) return;
      if (counts(entry)) clear(at, entry);
    }
    if (period > before) {
      compareExchange(words_, base + PERIOD, static_cast<Word>(before), static_cast<Word>(period));
    }
  }

  static int32_t periodOf(double nowMs) {
    // Wraps as in TypeScript.
    return static_cast<int32_t>(static_cast<Word>(static_cast<int64_t>(std::floor(nowMs / PERIOD_MS))));
  }

  /** @see Hops in cell_time.h */
  int64_t hop(int64_t behind) const {
    if (behind <= SWEEP_TICKS) return behind;
    const int64_t over = behind - SWEEP_TICKS - ENTRY_TICKS / 2;
    return SWEEP_TICKS + ENTRY_TICKS * (over > 0 ? over / ENTRY_TICKS : 0);
  }

  /** Clears what is out, before its age becomes that of another lap. */
  void sweep(size_t base, Word from, int64_t hop, Word to) {
    if (hop < SWEEP_TICKS && from / SWEEP_TICKS == to / SWEEP_TICKS) return;
    for (size_t at = base + ENTRIES; at < base + ENTRIES + length_; at++) {
      const Word entry = load(words_, at);
      if (!counts(entry) || isIn(entry, to)) continue;
      if (isLate(base, to)) return;
      clear(at, entry);
    }
  }

 private:
  /** The word that follows `entry` with a unit in `tick`. */
  static Word charged(Word entry, Word tick) {
    return tick << ENTRY_TICK_SHIFT | ENTRY_COUNTS | ((entry + 1) & ENTRY_VERSIONS);
  }

  /** Takes the unit of an entry out. Returns false if it has changed. */
  bool clear(size_t at, Word entry) {
    const Word next = (entry & ~(ENTRY_COUNTS | ENTRY_VERSIONS)) | ((entry + 1) & ENTRY_VERSIONS);
    return compareExchange(words_, at, entry, next) == entry;
  }

  /**
   * Whether an entry, read before, may be newer than tick e although it seems to be out: if so, the cell's tick
   * has moved on. (The date of an entry may be one tick after the cell's.)
   */
  bool isLate(size_t base, Word e) const {
    return shape_.distance(read(words_, base + TICK), e) >= MOST_AHEAD;
  }

  void forget() {
    places_.clear();
    written_.clear();
  }

  Word* const words_;
  const Shape& shape_;
  const Word length_;
  /** The ticks of the window. */
  const int64_t window_;
  /** The places and the words of the last charge. */
  std::vector<size_t> places_;
  std::vector<Word> written_;
};

}  // namespace millrace
