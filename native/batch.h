// Many decisions at the speed of memory. One decision waits for three lines of memory, one after the other: its set's
// names, the head of its way, its bucket. Here they are asked for 64 keys ahead of being needed:
//
//     names     of the first set of each key; then, where it is not there, of the second
//     places    by the names: the head of the way, and the bucket of the reading's tick
//     decide    one key after the other, in their order, the same key twice too
//
// A place found ahead is a hint that the decision looks at again, as TypeScript's is. What takes a new cell, a newer
// reading of the clock, or the whole of a table is left to TypeScript: the batch stops there, and is taken up behind it.
#pragma once

#include <array>
#include <ctime>

#include "forecast.h"
#include "table.h"

namespace millrace {

#if defined(__linux__)
inline constexpr bool READS_CLOCK = true;
/** The clock that `monotonicClock` of src/core/clock.ts reads, by the same steps. */
inline double monotonicMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}
#else
inline constexpr bool READS_CLOCK = false;
inline double monotonicMs() { return 0; }
#endif

/** Keys, their costs, and where the answers go; each array is as long as `to` says at least. */
struct Batch {
  /** lo, hi, lo, hi, ... */
  const Word* fingerprints;
  /** One for each key, or null: `cost` is that of all. */
  const double* costs;
  double cost;
  Word limit;
  size_t from;
  size_t to;
  /** Whether the clock is to be read at every 64th key; else the reading given is for all. */
  bool readsClock;
  uint8_t* allowed;
  /** By which reading each was decided. */
  double* at;
  /** Of each that was refused, SEEN_WORDS: its way, and the way's admission word, tick and UNTIL then. */
  Word* seen;
  /** What was left after each, or null where nobody asked. */
  Word* remaining;
};

struct Tally {
  /** The first that was not decided, or `to`. */
  size_t stopped;
  uint32_t admitted;
  /** Whether it stopped at a cost that is no integer of 0 or more. */
  bool isBadCost;
};

/** On cells that are summed by `Sums`. */
template <typename Sums>
class Batches {
 public:
  Batches(Word* words, const Shape& shape)
      : words_(words), shape_(shape), cells_(words, shape), table_(words, shape, cells_), forecast_(words, shape, cells_) {}

  /** Decides from `from` on by `nowMs`. */
  Tally admit(const Batch& batch, double nowMs) {
    Reading reading(shape_, nowMs);
    uint32_t admitted = 0;
    slot_ = cells_.ring().slot(reading.tick);
    begin(batch);
    for (size_t i = batch.from; i < batch.to; i++) {
      if (batch.readsClock && i % KEYS_PER_READING == 0 && i != batch.from) {
        reading = Reading(shape_, monotonicMs());
        slot_ = cells_.ring().slot(reading.tick);
      }
      // Each decision is by the limit of its moment: by another one TypeScript takes the batch up again.
      if (read(words_, HEADER_LIMIT) != batch.limit) return {i, admitted, false};
      fetch(batch, i);
      int64_t way = places_[i % ON_THEIR_WAY];
      const Found found = decide(batch, i, way, reading);
      if (found != Found::ADMITTED && found != Found::FULL) return {i, admitted, found == Found::BAD_COST};
      batch.allowed[i] = found == Found::ADMITTED;
      batch.at[i] = reading.nowMs;
      if (found == Found::ADMITTED) admitted++;
      else keep(batch.seen + i * SEEN_WORDS, way);
      if (batch.remaining == nullptr) continue;
      batch.remaining[i] = forecast_.remaining(static_cast<size_t>(way), batch.limit, reading);
    }
    return {batch.to, admitted, false};
  }

 private:
  /** How many keys one stage is ahead of the next: what memory takes, at ten nanoseconds a decision. */
  static constexpr size_t STAGE = 16;
  static constexpr size_t ON_THEIR_WAY = 64;
  static_assert(3 * STAGE < ON_THEIR_WAY);

  void keep(Word* seen, int64_t way) const {
    const Charge& decided = cells_.charged();
    seen[0] = static_cast<Word>(way);
    seen[1] = decided.adm;
    seen[2] = decided.tick;
    seen[3] = decided.until;
  }

  static Name nameAt(const Batch& batch, size_t i) {
    return {batch.fingerprints[2 * i], batch.fingerprints[2 * i + 1]};
  }

  /** Every stage for the first keys, which have nobody before them to be fetched behind. */
  void begin(const Batch& batch) {
    const auto first = [&](size_t keys) { return std::min(batch.from + keys, batch.to); };
    for (size_t i = batch.from; i < first(3 * STAGE); i++) fetchNames(batch, i);
    for (size_t i = batch.from; i < first(2 * STAGE); i++) fetchSet(batch, i);
    for (size_t i = batch.from; i < first(STAGE); i++) fetchCell(batch, i);
  }

  /** One step of every stage, when key `i` is about to be decided; past the end the last key is fetched again. */
  void fetch(const Batch& batch, size_t i) {
    const size_t last = batch.to - 1;
    fetchNames(batch, std::min(i + 3 * STAGE, last));
    fetchSet(batch, std::min(i + 2 * STAGE, last));
    fetchCell(batch, std::min(i + STAGE, last));
  }

  void fetchNames(const Batch& batch, size_t i) const {
    prefetch(words_ + NAMES_AT + table_.firstSet(nameAt(batch, i).lo));
  }

  /** Most keys are in their first set. The others are every fifth, too many and too few for a branch to be foreseen. */
  void fetchSet(const Batch& batch, size_t i) {
    const Name name = nameAt(batch, i);
    const size_t first = table_.firstSet(name.lo);
    const size_t second = table_.secondSet(first, name.hi);
    const int64_t way = table_.guessIn(first, name.lo);
    const bool isThere = way != NO_WAY;
    const size_t head = cells_.base(static_cast<size_t>(way));
    sets_[i % ON_THEIR_WAY] = isThere ? first : second;
    prefetch(words_ + (isThere ? head : NAMES_AT + second));
    prefetch(words_ + (isThere ? head + BUCKETS + slot_ : NAMES_AT + second));
  }

  void fetchCell(const Batch& batch, size_t i) {
    const int64_t way = table_.guessIn(sets_[i % ON_THEIR_WAY], nameAt(batch, i).lo);
    places_[i % ON_THEIR_WAY] = way;
    if (way == NO_WAY) return;
    const size_t head = cells_.base(static_cast<size_t>(way));
    prefetch(words_ + head);
    prefetch(words_ + head + BUCKETS + slot_);
    cells_.ring().sums().fetch(head, slot_);
  }

  /**
   * ADMITTED or FULL, or BAD_COST; GONE where the key is in no way, or NEEDS_READING: not decided, and nothing charged.
   * `way` is where it may be, and then where it was. A function of its own: within the loop of `admit`, as g++ would have it,
   * a decision on keys that are in no cache takes a third longer (58 ns for 76 on 300,000 keys, AMD EPYC Zen 4, g++ 12.2,
   * 2026-11-21, `npm run bench -- --case batch`).
   */
  [[gnu::noinline]] Found decide(const Batch& batch, size_t i, int64_t& way, const Reading& reading) {
    const Name name = nameAt(batch, i);
    const double given = batch.costs == nullptr ? batch.cost : batch.costs[i];
    if (!(given >= 0)) return Found::BAD_COST;
    if (given == 0 || given > batch.limit) return decideUncharged(batch, name, given, way, reading);
    const auto cost = static_cast<Word>(given);
    if (cost != given) return Found::BAD_COST;
    if (way != NO_WAY) {
      const Found found = cells_.attempt(static_cast<size_t>(way), name, cost, batch.limit, reading);
      if (found != Found::UNDECIDED) return found;
    }
    for (;;) {
      way = table_.findLive(name);
      if (way == NO_WAY) return Found::GONE;
      if (!cells_.enter(cells_.base(static_cast<size_t>(way)), reading)) return Found::NEEDS_READING;
      const Found found = cells_.decide(static_cast<size_t>(way), name, cost, batch.limit, reading);
      if (found != Found::GONE) return found;
    }
  }

  /** Cost 0 passes unless the key is blocked; a cost above the limit never does. Neither touches the table. */
  Found decideUncharged(const Batch& batch, Name name, double cost, int64_t& way, const Reading& reading) {
    way = table_.findLive(name);
    if (way == NO_WAY && batch.remaining != nullptr) return Found::GONE;  // what is left takes the whole table
    if (way == NO_WAY) return cost > 0 ? Found::FULL : Found::ADMITTED;
    const size_t base = cells_.base(static_cast<size_t>(way));
    const Word v = load(words_, base + ADM);
    cells_.see(static_cast<size_t>(way), v);
    return cells_.isShut(base, v, reading.nowMs) || cost > 0 ? Found::FULL : Found::ADMITTED;
  }

  Word* const words_;
  const Shape& shape_;
  Cells<Sums> cells_;
  Table<Sums> table_;
  Forecast<Sums> forecast_;
  uint32_t slot_ = 0;
  /** Of the keys between two stages, by their index: the set that they may be in, and then the way. */
  std::array<size_t, ON_THEIR_WAY> sets_{};
  std::array<int64_t, ON_THEIR_WAY> places_{};
};

}  // namespace millrace
