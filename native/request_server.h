// Serves the requests that another thread has written to a ring. src/memory/request-ring.ts has the layout of
// the ring, src/engines/pool/ring-transport.ts its protocol. This class replies to CHECK requests that are
// admitted. It stops at every other request, which src/engines/pool/worker.ts serves. It prefetches the cache
// lines of a group of requests.
#pragma once

#include <array>

#include "decider.h"

namespace millrace {

/** Requires the strict edge. */
template <typename Algorithm>
class RequestServer {
 public:
  RequestServer(Word* words, const Shape& shape, Word* ring)
      : words_(words), shape_(shape), ring_(ring), decider_(words, shape) {}

  /**
   * Serves the requests from cursor `from` to before cursor `to`, all by one reading. Returns the first
   * request that it did not serve. Every request before that one was admitted and charged.
   */
  Word run(Word from, Word to, const Reading& reading) {
    for (Word first = from; first != to;) {
      const Word last = to - first > GROUP ? first + GROUP : to;
      const Word end = prefetchNames(first, last);
      for (Word i = first; i != end; i++) prefetchCell(i, reading);
      for (Word i = first; i != end; i++) {
        const Word current = read(words_, HEADER_CURRENT);  // each decision uses the present rule
        const Word limit = current & CURRENT_LIMIT;
        if (recordIn(current) != shape_.record || limit > MAX_TOTAL) return i;
        if (!serve(i, limit, reading)) return i;
      }
      // Published after each group, so that the client can process these replies in the meantime.
      store(ring_, RING_REPLIED, end);
      if (end != last) return end;
      first = end;
    }
    return to;
  }

 private:
  static constexpr Word GROUP = 32;
  /** A cell of up to 8 lines is prefetched whole. */
  static constexpr size_t MOST_PREFETCHED = 8 * LINE_WORDS;

  static size_t requestOf(Word cursor) {
    return REQUESTS_AT + (size_t{cursor & (SLOTS - 1)} << REQUEST_BITS);
  }

  static size_t slotOf(Word cursor) { return SLOTS_AT + size_t{cursor & (SLOTS - 1)} * SLOT_WORDS; }

  /** Stops at the first request that is not a CHECK, or has cost 0. */
  Word prefetchNames(Word from, Word to) {
    for (Word i = from; i != to; i++) {
      const size_t request = requestOf(i);
      if (read(ring_, request + REQUEST_OP) != OP_CHECK || read(ring_, request + REQUEST_COST) == 0) return i;
      const Name name{read(ring_, request + REQUEST_LO), read(ring_, request + REQUEST_HI)};
      names_[i % GROUP] = name;
      prefetchToWrite(ring_ + slotOf(i));
      prefetch(words_ + NAMES_AT + decider_.table().firstSet(name.lo));
    }
    return to;
  }

  /** Finds a hint of the key's way, and prefetches the way's first lines and its bucket. */
  void prefetchCell(Word i, const Reading& reading) {
    const int64_t way = decider_.table().guess(names_[i % GROUP]);
    ways_[i % GROUP] = way;
    if (way == NO_WAY) return;
    const size_t base = decider_.cells().base(static_cast<size_t>(way));
    const size_t end = base + std::min<size_t>(shape_.wayWords, MOST_PREFETCHED);
    for (size_t at = base; at < end; at += LINE_WORDS) prefetch(words_ + at);
    prefetch(words_ + base + decider_.cells().placeOf(reading));
  }

  /** Returns false if it neither replied nor charged. */
  bool serve(Word i, Word limit, const Reading& reading) {
    const Word cost = read(ring_, requestOf(i) + REQUEST_COST);
    int64_t way = ways_[i % GROUP];
    if (cost == 0 || cost > limit || way == NO_WAY) return false;
    // If this thread dies while ACCEPTED is ahead of COMPLETED, the client knows that this request may have
    // been charged.
    write(ring_, RING_ACCEPTED, i + 1);
    if (decider_.decide(way, names_[i % GROUP], cost, limit, reading) != Result::ADMITTED) {
      write(ring_, RING_ACCEPTED, i);
      return false;
    }
    const size_t slot = slotOf(i);
    const Decided& decided = decider_.cells().decided();
    const Word remaining = decider_.estimates().remaining(static_cast<size_t>(way), limit, reading);
    write(ring_, slot + SLOT_LIMIT, limit);
    write(ring_, slot + SLOT_OUTCOME, OUTCOME_CHARGED);
    write(ring_, slot + SLOT_WAY, static_cast<Word>(way));
    write(ring_, slot + SLOT_CHARGED_TICK, decided.tick);
    write(ring_, slot + SLOT_REFUNDS, decider_.cells().receipt());
    write(ring_, slot + SLOT_REMAINING, remaining);
    writeDouble(slot / 2 + SLOT_NUMBER, reading.nowMs);
    writeDouble(slot / 2 + SLOT_RETRY_AFTER_MS, 0);
    writeDouble(slot / 2 + SLOT_RESET_MS, decider_.estimates().untilGone(decided, reading));
    write(ring_, RING_COMPLETED, i + 1);
    return true;
  }

  /** `index` counts in doubles. */
  void writeDouble(size_t index, double value) {
    std::atomic_ref(reinterpret_cast<double*>(ring_)[index]).store(value, std::memory_order_relaxed);
  }

  Word* const words_;
  const Shape& shape_;
  Word* const ring_;
  Decider<Algorithm> decider_;
  /** The name and the hint of each request of the group, by the cursor modulo GROUP. */
  std::array<Name, GROUP> names_{};
  std::array<int64_t, GROUP> ways_{};
};

}  // namespace millrace
