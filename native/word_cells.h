// Decisions on a cell whose counts are all in its admission word. The counterpart of
// src/algorithms/word/word-cells.ts, which explains the protocol and why its steps have this order. Both run on the
// same words at the same time. Change both files together. TypeScript refunds, penalizes, blocks, and inserts
// keys.
#pragma once

#include "cell_time.h"
#include "keyed_cells.h"
#include "meter.h"

namespace millrace {

/** `Meter` says what the low bits of the admission word mean: FixedWindow or TokenBucket. */
template <typename Meter>
class WordCells : public KeyedCells {
 public:
  WordCells(Word* words, const Shape& shape)
      : KeyedCells(words, shape), meter_(shape), time_(words, shape) {}

  const Meter& meter() const { return meter_; }
  const CellTime& time() const { return time_; }

  /** @see Cells.receipt */
  Word receipt() const { return decided_.adm; }

  /** @see Cells.placeOf. A decision reads nothing beside the head, which may lie on two lines. */
  size_t placeOf(const Reading&) const { return UNTIL; }

  void prefetch(size_t base, size_t place) const {
    millrace::prefetch(words_ + base);
    millrace::prefetch(words_ + base + place);
  }

  void prefetchAll(size_t base, size_t place) const { prefetch(base, place); }

  /** What an admission word and its tick say that the key has used at most: units, or of a bucket their time. */
  Word mostIn(Word v, Word w) const { return (v - meter_.emptyAt(tickOf(w))) & METER; }

  static bool isShut(Word v) { return (v & SHUT) != 0; }

  bool isBlocked(size_t base, Word v, double nowMs) {
    return (v & (STATE | SHUT)) == (LIVE | SHUT) && isBefore(nowMs, untilOf(base));
  }

  /** `decide` does that. */
  bool enter(size_t, const Reading&) const { return true; }

  /** @see Cells.attempt */
  Result attempt(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    const Word v = readInOrder(words_, base + ADM);
    if (isShut(v) || !isOf(v, way, name)) return Result::UNDECIDED;
    const Word w = read(words_, base + TICK);
    if (!meter_.isPresent(v, w, reading)) return Result::UNDECIDED;
    return charge(base, v, w, cost, limit, reading);
  }

  /** @see Cells.decide. Returns NEEDS_READING if the cell needs a newer reading. */
  Result decide(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word v = load(words_, base + ADM);
      if (!isOf(v, way, name)) return Result::GONE;
      const Word w = read(words_, base + TICK);
      const Entry entry = enter(base, v, w, reading);
      if (entry == Entry::NEEDS_READING) return Result::NEEDS_READING;
      if (entry == Entry::CHANGED) continue;
      if (isShut(v)) {
        if (isBefore(reading.nowMs, untilOf(base))) return full(v, w);
        compareExchange(words_, base + ADM, v, (v & ~SHUT) + ONE_EPOCH);
        continue;
      }
      const Result result = charge(base, v, w, cost, limit, reading);
      if (result != Result::UNDECIDED) return result;
    }
    return Result::NEEDS_READING;  // damaged memory: TypeScript refuses
  }

 private:
  /** Whether `v` and `w` may be used. CHANGED: one of them has changed, and the caller starts again. */
  enum class Entry { ENTERED, CHANGED, NEEDS_READING };

  /** Admits, refuses, or returns UNDECIDED after another thread's change. */
  Result charge(size_t base, Word v, Word w, Word cost, Word limit, const Reading& reading) {
    const Word next = meter_.charged(v, w, cost, limit, reading);
    if (next == v) return isStill(words_, base + ADM, v) ? full(v, w) : Result::UNDECIDED;
    if (compareExchange(words_, base + ADM, v, next) != v) return Result::UNDECIDED;
    decided_ = {w, 0, next, 0};
    return Result::ADMITTED;
  }

  /** Brings a cell up to the reading. `v` was loaded before `w`, and it is LIVE. */
  Entry enter(size_t base, Word v, Word w, const Reading& reading) {
    const Word tick = tickOf(w);
    if (!isSettled(w)) {
      if (empties(base, v, w)) compareExchange(words_, base + TICK, w, settled(tick));
      return Entry::CHANGED;
    }
    const int64_t behind = shape_.distance(reading.tick, tick);
    if (behind == 0) return Entry::ENTERED;
    const Side side = time_.sideOf(base, behind, reading);
    if (side == Side::STANDS_AHEAD) return Entry::ENTERED;
    if (side == Side::FAR_AHEAD) return Entry::NEEDS_READING;
    if (meter_.isOver(behind)) {
      time_.raiseNewest(reading);
      compareExchange(words_, base + TICK, w, marked(reading.tick));
      return Entry::CHANGED;
    }
    if (meter_.stays(v)) return Entry::ENTERED;
    if (meter_.isBehind(v, w) && !empties(base, v, w)) return Entry::CHANGED;
    time_.raiseNewest(reading);
    compareExchange(words_, base + TICK, w, settled(reading.tick));
    return Entry::CHANGED;
  }

  /** Empties the meter at the start of the cell's tick. Returns false if `v` has changed. */
  bool empties(size_t base, Word v, Word w) {
    const Word emptied = ((v & ~METER) + ONE_EPOCH) | meter_.emptyAt(tickOf(w));
    return compareExchange(words_, base + ADM, v, emptied) == v;
  }

  const Meter meter_;
  const CellTime time_;
};

}  // namespace millrace
