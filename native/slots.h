// Answers what other threads ask in a ring of slots: src/engines/ring-transport.ts, which tells how it is worked, and
// src/engines/worker.ts, which answers everything else. Here are decisions that are admitted, and their figures; the lines of
// memory of many are asked for ahead. A run stops at whatever takes more, and TypeScript answers that.
#pragma once

#include <algorithm>
#include <array>

#include "batch.h"

namespace millrace {

/** On cells that are summed by `Sums`, by the strict edge. */
template <typename Sums>
class SlotAnswerer {
 public:
  SlotAnswerer(Word* words, const Shape& shape)
      : words_(words), shape_(shape), cells_(words, shape), table_(words, shape, cells_), forecast_(words, shape, cells_) {}

  /** From the cursor `from` on, up to `to`, by one reading. Returns the first that it has not answered; each other was charged. */
  Word run(Word* ring, Word from, Word to, const Reading& reading) {
    for (Word first = from; first != to;) {
      const Word last = to - first > GROUP ? first + GROUP : to;
      const Word end = fetchNames(ring, first, last);
      for (Word i = first; i != end; i++) fetchCell(i, reading);
      for (Word i = first; i != end; i++) {
        const Word limit = read(words_, HEADER_LIMIT);  // each decision is by the limit of its moment
        if (limit > MAX_TOTAL || !answer(ring, i, limit, reading)) return i;
      }
      // Shown group by group, so that the asker may work on the first meanwhile.
      store(ring, RING_REPLIED, end);
      if (end != last) return end;
      first = end;
    }
    return to;
  }

 private:
  static constexpr Word GROUP = 32;

  static size_t requestOf(Word cursor) { return REQUESTS_AT + (size_t{cursor & (SLOTS - 1)} << REQUEST_BITS); }
  static size_t slotOf(Word cursor) { return SLOTS_AT + size_t{cursor & (SLOTS - 1)} * SLOT_WORDS; }

  /** Up to the first that is no decision with a cost. */
  Word fetchNames(Word* ring, Word from, Word to) {
    for (Word i = from; i != to; i++) {
      const size_t request = requestOf(i);
      if (read(ring, request + REQUEST_OP) != OP_CHECK || read(ring, request + REQUEST_COST) == 0) return i;
      const Name name{read(ring, request + REQUEST_LO), read(ring, request + REQUEST_HI)};
      names_[i % GROUP] = name;
      prefetchToWrite(ring + slotOf(i));
      prefetch(words_ + NAMES_AT + table_.firstSet(name.lo));
    }
    return to;
  }

  /** A hint where the key is, and the cell there: its head, and what is summed of it where that is not much. */
  void fetchCell(Word i, const Reading& reading) {
    constexpr size_t LINE = 16;
    constexpr size_t MOST = 8 * LINE;
    const int64_t way = table_.guess(names_[i % GROUP]);
    ways_[i % GROUP] = way;
    if (way == NO_WAY) return;
    const size_t base = cells_.base(static_cast<size_t>(way));
    const size_t end = base + std::min<size_t>(shape_.wayWords, MOST);
    for (size_t at = base; at < end; at += LINE) prefetch(words_ + at);
    prefetch(words_ + base + BUCKETS + cells_.ring().slot(reading.tick));
  }

  /** False: it is not answered, and nothing is charged. */
  bool answer(Word* ring, Word i, Word limit, const Reading& reading) {
    const size_t slot = slotOf(i);
    const Name name = names_[i % GROUP];
    const Word cost = read(ring, requestOf(i) + REQUEST_COST);
    int64_t way = ways_[i % GROUP];
    if (cost == 0 || cost > limit || way == NO_WAY) return false;
    write(ring, RING_ACCEPTED, i + 1);
    Found found = cells_.attempt(static_cast<size_t>(way), name, cost, limit, reading);
    while (found == Found::UNDECIDED || found == Found::GONE) {
      way = table_.findLive(name);
      if (way == NO_WAY || !cells_.enter(cells_.base(static_cast<size_t>(way)), reading)) break;
      found = cells_.decide(static_cast<size_t>(way), name, cost, limit, reading);
    }
    if (found != Found::ADMITTED) {
      write(ring, RING_ACCEPTED, i);
      return false;
    }
    write(ring, slot + SLOT_LIMIT, limit);
    write(ring, slot + SLOT_OUTCOME, OUTCOME_CHARGED);
    write(ring, slot + SLOT_WAY, static_cast<Word>(way));
    write(ring, slot + SLOT_CHARGED_TICK, cells_.charged().tick);
    write(ring, slot + SLOT_REFUNDS, cells_.charged().refunds);
    write(ring, slot + SLOT_REMAINING, forecast_.remaining(static_cast<size_t>(way), limit, reading));
    put(ring, slot / 2 + SLOT_RETRY_AFTER_MS, 0);
    put(ring, slot / 2 + SLOT_RESET_MS, untilGone(cells_.charged().tick, reading));
    write(ring, RING_COMPLETED, i + 1);
    return true;
  }

  static void put(Word* ring, size_t index, double value) {
    std::atomic_ref(reinterpret_cast<double*>(ring)[index]).store(value, std::memory_order_relaxed);
  }

  /** Whole milliseconds from the reading until what was charged in this tick counts no more: Forecast.untilGone of TypeScript. */
  double untilGone(Word tick, const Reading& reading) {
    const double fromMs = reading.nowMs;
    const int64_t behind = shape_.distance(reading.tick, tick);
    const int64_t age = 2 * behind > shape_.modulus ? behind - shape_.modulus : behind;
    const double position = reading.absoluteTick - static_cast<double>(age) + cells_.ring().size;
    if (position != gonePosition_ || fromMs != goneFromMs_) {
      gonePosition_ = position;
      goneFromMs_ = fromMs;
      goneMs_ = shape_.untilPosition(fromMs, position);
    }
    return goneMs_;
  }

  Word* const words_;
  const Shape& shape_;
  Cells<Sums> cells_;
  Table<Sums> table_;
  Forecast<Sums> forecast_;
  std::array<Name, GROUP> names_{};
  std::array<int64_t, GROUP> ways_{};
  /** What was asked last, and the answer. */
  double gonePosition_ = std::nan("");
  double goneFromMs_ = 0;
  double goneMs_ = 0;
};

}  // namespace millrace
