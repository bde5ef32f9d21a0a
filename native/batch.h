// Decides many keys at the speed of memory. A decision waits for three cache lines, one after another: the
// names of its set, the head of its way, and its bucket. A pipeline prefetches them for up to 48 keys ahead
// of the decision:
//
//     names     the names of each key's first set
//     set       the head and bucket of the way in the first set, or the names of the second set
//     cell      the head, bucket and nodes of the way
//     decide    decides the keys in their order; a key may occur twice
//
// A way found ahead is a hint, which the decision verifies. The batch stops at a key that needs a new cell or
// a newer reading of the clock. TypeScript decides that key, and the next call continues after it.
#pragma once

#include <array>

#include "clock.h"
#include "decider.h"

namespace millrace {

/** The keys, their costs and the arrays for the results. Each array has at least `to` entries. */
struct Batch {
  /** Two words for each key: lo, hi. */
  const Word* fingerprints;
  /** One for each key. If null, `cost` holds for all keys. */
  const double* costs;
  double cost;
  Word limit;
  size_t from;
  size_t to;
  /** Whether to read the clock every KEYS_PER_READING keys. Otherwise one reading holds for all keys. */
  bool readsClock;
  /** 1 for each admitted key, 0 for each refused key. */
  uint8_t* allowed;
  /** The reading of each decision, in milliseconds. */
  double* at;
  /**
   * SEEN_WORDS for each refused key: its way, and the way's admission word, tick and UNTIL at the decision.
   */
  Word* seen;
  /** From where on an admission is a suspect, and from how many used units on its key is near the limit. */
  Word suspectFrom;
  double nearFrom;
  /** The units left after each decision. Null if the caller did not ask for them. */
  Word* remaining;
};

struct BatchResult {
  /** The first key that was not decided, or `to`. */
  size_t stopped;
  uint32_t admitted;
  /** Admissions that left their keys near the limit. */
  uint32_t near;
  /** Whether the batch stopped at a cost that is not an integer of 0 or more. */
  bool isBadCost;
};

template <typename Algorithm>
class BatchDecider {
 public:
  using Cells = typename Algorithm::Cells;

  BatchDecider(Word* words, const Shape& shape)
      : words_(words),
        shape_(shape),
        decider_(words, shape),
        cells_(decider_.cells()),
        table_(decider_.table()) {}

  /** Decides the keys from `from` on. `nowMs` is the first reading. */
  BatchResult run(const Batch& batch, double nowMs) {
    Reading reading(shape_, nowMs);
    uint32_t admitted = 0;
    uint32_t near = 0;
    const Word current = currentOf(batch);
    place_ = cells_.placeOf(reading);
    beginPipeline(batch);
    for (size_t i = batch.from; i < batch.to; i++) {
      if (batch.readsClock && i % KEYS_PER_READING == 0 && i != batch.from) {
        reading = Reading(shape_, monotonicMs());
        place_ = cells_.placeOf(reading);
      }
      // Each decision uses the present rule. If it has changed, TypeScript calls again with the new one.
      if (read(words_, HEADER_CURRENT) != current) return {i, admitted, near, false};
      advancePipeline(batch, i);
      int64_t way = ways_[i % IN_FLIGHT];
      const Result result = decide(batch, i, way, reading);
      const bool isAdmitted = result == Result::ADMITTED;
      if (!isAdmitted && result != Result::FULL) return {i, admitted, near, result == Result::BAD_COST};
      batch.allowed[i] = isAdmitted;
      batch.at[i] = reading.nowMs;
      if (isAdmitted) admitted++;
      else writeSeen(batch.seen + i * SEEN_WORDS, way);
      const bool isSuspect = isAdmitted && costAt(batch, i) > 0 && mostUsed() >= batch.suspectFrom;
      if (batch.remaining == nullptr && !isSuspect) continue;
      const Word left = decider_.estimates().remaining(static_cast<size_t>(way), batch.limit, reading);
      if (isSuspect && batch.limit - left >= batch.nearFrom) near++;
      if (batch.remaining != nullptr) batch.remaining[i] = left;
    }
    return {batch.to, admitted, near, false};
  }

 private:
  /** How many keys one stage is ahead of the next: the latency of memory, at 10 ns a decision. */
  static constexpr size_t STAGE = 16;
  static constexpr size_t IN_FLIGHT = 64;
  static_assert(3 * STAGE < IN_FLIGHT);

  void writeSeen(Word* seen, int64_t way) const {
    const Decided& decided = cells_.decided();
    seen[0] = static_cast<Word>(way);
    seen[1] = decided.adm;
    seen[2] = decided.tick;
    seen[3] = decided.until;
    static_assert(SEEN_WORDS == 4);
  }

  static double costAt(const Batch& batch, size_t i) { return batch.costs == nullptr ? batch.cost : batch.costs[i]; }

  /** What the last decision says that its key has used at most. */
  Word mostUsed() const {
    const Decided& decided = cells_.decided();
    return cells_.mostIn(decided.adm, decided.tick);
  }

  /** CURRENT, as long as the batch can decide. */
  Word currentOf(const Batch& batch) const { return shape_.record << CURRENT_RECORD_SHIFT | batch.limit; }

  static Name nameAt(const Batch& batch, size_t i) {
    return {batch.fingerprints[2 * i], batch.fingerprints[2 * i + 1]};
  }

  /** Runs the stages of the first keys. */
  void beginPipeline(const Batch& batch) {
    const auto first = [&](size_t keys) { return std::min(batch.from + keys, batch.to); };
    for (size_t i = batch.from; i < first(3 * STAGE); i++) prefetchNames(batch, i);
    for (size_t i = batch.from; i < first(2 * STAGE); i++) prefetchSet(batch, i);
    for (size_t i = batch.from; i < first(STAGE); i++) prefetchCell(batch, i);
  }

  /** Runs each stage once, just before key `i` is decided. After the end a stage repeats the last key. */
  void advancePipeline(const Batch& batch, size_t i) {
    const size_t last = batch.to - 1;
    prefetchNames(batch, std::min(i + 3 * STAGE, last));
    prefetchSet(batch, std::min(i + 2 * STAGE, last));
    prefetchCell(batch, std::min(i + STAGE, last));
  }

  void prefetchNames(const Batch& batch, size_t i) const {
    prefetch(words_ + NAMES_AT + table_.firstSet(nameAt(batch, i).lo));
  }

  /**
   * Four of five keys are in their first set. The processor would mispredict a branch on that too often, so
   * this stage has none.
   */
  void prefetchSet(const Batch& batch, size_t i) {
    const Name name = nameAt(batch, i);
    const size_t first = table_.firstSet(name.lo);
    const size_t second = table_.secondSet(first, name.hi);
    const int64_t way = table_.guessIn(first, name.lo);
    const bool isInFirst = way != NO_WAY;
    const size_t head = cells_.base(static_cast<size_t>(way));
    sets_[i % IN_FLIGHT] = isInFirst ? first : second;
    prefetch(words_ + (isInFirst ? head : NAMES_AT + second));
    prefetch(words_ + (isInFirst ? head + place_ : NAMES_AT + second));
  }

  void prefetchCell(const Batch& batch, size_t i) {
    const int64_t way = table_.guessIn(sets_[i % IN_FLIGHT], nameAt(batch, i).lo);
    ways_[i % IN_FLIGHT] = way;
    if (way == NO_WAY) return;
    cells_.prefetchAll(cells_.base(static_cast<size_t>(way)), place_);
  }

  /**
   * Returns ADMITTED, FULL or BAD_COST; or GONE or NEEDS_READING, and then nothing was charged. `way` is a
   * hint, and then the way that decided.
   *
   * A function of its own, because g++ inlines it into the loop of `run` otherwise. Then a decision on keys
   * that are in no cache takes a third longer (76 ns instead of 58 on 300,000 keys, AMD EPYC Zen 4, g++ 12.2,
   * 2026-11-21, `npm run bench -- --case batch`).
   */
  [[gnu::noinline]] Result decide(const Batch& batch, size_t i, int64_t& way, const Reading& reading) {
    const Name name = nameAt(batch, i);
    const double given = costAt(batch, i);
    if (!(given >= 0)) return Result::BAD_COST;
    if (given == 0 || given > batch.limit) return decideUncharged(batch, name, given, way, reading);
    const auto cost = static_cast<Word>(given);
    if (cost != given) return Result::BAD_COST;
    return decider_.decide(way, name, cost, batch.limit, reading);
  }

  /**
   * Cost 0 passes unless the key is blocked. A cost above the limit never passes. Neither changes the table.
   */
  Result decideUncharged(const Batch& batch, Name name, double cost, int64_t& way, const Reading& reading) {
    way = table_.findLive(name);
    // TypeScript computes what is left for a new key, because that needs the whole table. It also converts a
    // cell of another record.
    if (way == NO_WAY) {
      if (batch.remaining != nullptr || !decider_.isAbsent(currentOf(batch))) return Result::GONE;
      return cost > 0 ? Result::FULL : Result::ADMITTED;
    }
    const size_t base = cells_.base(static_cast<size_t>(way));
    const Word v = load(words_, base + ADM);
    cells_.see(static_cast<size_t>(way), v);
    return cells_.isBlocked(base, v, reading.nowMs) || cost > 0 ? Result::FULL : Result::ADMITTED;
  }

  Word* const words_;
  const Shape& shape_;
  Decider<Algorithm> decider_;
  Cells& cells_;
  Table<Cells>& table_;
  /** The place of the present reading. */
  size_t place_ = 0;
  /** The set and the way of each key between two stages, by the key's index modulo IN_FLIGHT. */
  std::array<size_t, IN_FLIGHT> sets_{};
  std::array<int64_t, IN_FLIGHT> ways_{};
};

}  // namespace millrace
