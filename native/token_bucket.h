// The generic cell rate algorithm. The counterpart of src/algorithms/word/token-bucket.ts, which explains it. Each
// number here is a whole number that 64 bits hold, or computed from doubles by the steps of TypeScript.
#pragma once

#include "word_cells.h"

namespace millrace {

class TokenBucket {
 public:
  explicit TokenBucket(const Shape& shape)
      : shape_(shape),
        g_(shape.units / shape.buckets),
        b_(shape.units),
        latest_(g_ - 1 + MOST_BUCKETS_TAKEN * b_),
        perMs_(static_cast<double>(g_) / shape.granuleMs),
        last_(fillingBy(0, b_)) {}

  /** The tick of a cell moves on to that of the reading. */
  bool stays(Word) const { return false; }
  bool isPresent(Word, Word w, const Reading& reading) const { return w == settled(reading.tick); }
  bool isOver(int64_t behind) const { return behind * g_ >= latest_; }
  /** Whether the TAT is from before the cell's tick. */
  bool isBehind(Word v, Word w) const { return tat(v, w) < 0; }
  Word emptyAt(Word tick) const { return tick * static_cast<Word>(g_) & METER; }

  /** @see FixedWindow.charged */
  Word charged(Word v, Word w, Word cost, Word limit, const Reading& reading) const {
    const Filling& by = this->by(limit);
    const int64_t tat = this->tat(v, w);
    const int64_t now = this->now(w, reading);
    const int64_t next = (tat > now ? tat : now) + timeOf(cost, by);
    return next - now > by.full ? v : moved(v, w, tat, next);
  }

  Word unitsAt(Word v, Word w, const Reading& reading, Word limit) const {
    const int64_t full = by(limit).full;
    const int64_t time = tat(v, w) - now(w, reading);
    return time > 0 ? static_cast<Word>((time * limit + full - 1) / full) : 0;
  }

  /** @see FixedWindow.untilRoom */
  double untilRoom(Word v, Word w, Word cost, Word limit, const Reading& reading) const {
    const Filling& by = this->by(limit);
    return untilTime(tat(v, w) + timeOf(cost, by) - by.full, w, reading);
  }

  double untilOver(Word v, Word w, const Reading& reading) const {
    return untilTime(tat(v, w), w, reading);
  }

 private:
  /** A limit, and by it the units of a full bucket and those of a token. */
  struct Filling {
    Word limit;
    int64_t full;
    int64_t token;
  };

  /** @see fullBy in src/core/rule-algorithms.ts. A limit of 0 is of damaged memory. */
  static Filling fillingBy(Word limit, int64_t units) {
    if (limit == 0) return {0, units, units};
    const int64_t token = (units + limit - 1) / limit;
    const int64_t full = limit * token;
    return {limit, full - token < units ? full : units, token};
  }

  const Filling& by(Word limit) const {
    if (limit != last_.limit) last_ = fillingBy(limit, b_);
    return last_;
  }

  /** The time of a cost, in units, rounded up. */
  static int64_t timeOf(Word cost, const Filling& by) {
    return cost <= 1 ? cost * by.token : (cost * by.full + by.limit - 1) / by.limit;
  }

  /** The start of a tick modulo M. All other times are in units after the start of the cell's tick. */
  int64_t start(Word w) const { return emptyAt(tickOf(w)); }

  int64_t tat(Word v, Word w) const {
    return latest_ - ((static_cast<Word>(latest_ + start(w)) - v) & METER);
  }

  /** `v` with its TAT moved from `from` to `to`. */
  Word moved(Word v, Word w, int64_t from, int64_t to) const {
    const int64_t start = this->start(w);
    const auto laps = static_cast<Word>(((start + to) >> M_BITS) - ((start + from) >> M_BITS));
    return ((v & ~METER) + laps * ONE_EPOCH) | (static_cast<Word>(start + to) & METER);
  }

  /** The time of the reading, or of the start of the cell's tick if that is later. */
  int64_t now(Word w, const Reading& reading) const {
    const int64_t since = ticksSince(shape_, w, reading);
    return since < 0 ? 0 : since * g_ + inTick(reading.nowMs - shape_.startMs(reading.absoluteTick));
  }

  /** The units after the start of a tick. `ms` is less than a granule. */
  int64_t inTick(double ms) const {
    const auto units = static_cast<int32_t>(ms * perMs_);
    return units < 0 ? 0 : units < g_ ? units : g_ - 1;
  }

  /** Whole milliseconds from the reading until a time. NaN if 16 steps do not find it: see `untilPosition`. */
  double untilTime(int64_t time, Word w, const Reading& reading) const {
    if (time <= now(w, reading)) return 0;
    const auto ticksOn = static_cast<double>(time / g_);
    const double tick = reading.absoluteTick - static_cast<double>(ticksSince(shape_, w, reading)) + ticksOn;
    const int64_t units = time % g_;
    const double startMs = shape_.startMs(tick);
    const auto isReached = [&](double ms) {
      const double own = std::floor(shape_.position(reading.nowMs + ms));
      return own > tick || (own == tick && inTick(reading.nowMs + ms - startMs) >= units);
    };
    double ms = std::ceil(startMs + static_cast<double>(units) * shape_.granuleMs / static_cast<double>(g_) -
                          reading.nowMs);
    for (int step = 0; step < 16; step++) {
      if (!isReached(ms)) ms++;
      else if (isReached(ms - 1)) ms--;
      else return ms < 0 ? 0 : ms;
    }
    return std::nan("");
  }

  const Shape& shape_;
  /** Units of a tick, of a full bucket, and the latest TAT after the start of the cell's tick. */
  const int64_t g_;
  const int64_t b_;
  const int64_t latest_;
  /** Units of a millisecond. */
  const double perMs_;
  /** By the last limit. Each thread has a bucket of its own. */
  mutable Filling last_;
};

}  // namespace millrace
