// Figures of a log. The counterpart of src/algorithms/log/log-estimates.ts. Each is a snapshot, which other threads may
// outdate.
#pragma once

#include "estimates.h"
#include "log_cells.h"

namespace millrace {

/** The methods are those of Estimates. */
class LogEstimates {
 public:
  LogEstimates(Word* words, const Shape& shape, LogCells& cells)
      : words_(words), shape_(shape), cells_(cells) {}

  Word remaining(size_t way, Word limit, const Reading& reading) {
    const size_t base = cells_.base(way);
    const Decided decided = cells_.decided();
    if (cells_.isBlocked(base, decided.adm, reading.nowMs)) return 0;
    look(base, reading);
    const bool isSame = cells_.isStillUnchanged(way, decided.adm, decided.tick);
    return leftOf(limit, isSame ? ages_.size() : decided.adm & COUNT);
  }

  /** @see Estimates.figures */
  Figures figures(size_t way, bool isAdmitted, Word cost, Word limit, const Reading& reading) {
    const Decided decided = cells_.decided();
    const double goneMs = untilGone(decided, reading);
    if (isAdmitted) return {remaining(way, limit, reading), 0, goneMs};
    look(cells_.base(way), reading);
    const size_t used = ages_.size();
    const double fitsMs = untilAtMost(limit - cost, reading);
    const double emptyMs = untilAtMost(0, reading);
    if (cells_.isStillUnchanged(way, decided.adm, decided.tick))
      return {leftOf(limit, used), fitsMs < 1 ? 1 : fitsMs, emptyMs};
    return {leftOf(limit, decided.adm & COUNT), goneMs < 1 ? 1 : goneMs, goneMs};
  }

  double usedInLast(size_t base, const Reading& reading, double lastMs) {
    look(base, reading);
    const double from = shape_.position(reading.nowMs - lastMs);
    const auto isYoung = [&](int32_t age) { return newest_ - age > from; };
    return static_cast<double>(std::count_if(ages_.begin(), ages_.end(), isYoung));
  }

  double untilFits(size_t base, Word cost, Word limit, const Reading& reading) {
    look(base, reading);
    return untilAtMost(limit - cost, reading);
  }

  double untilGone(const Decided& decided, const Reading& reading) {
    const int64_t behind = shape_.distance(reading.tick, cells_.dateOf(decided.tick, reading));
    const int64_t age = 2 * behind > shape_.modulus ? behind - shape_.modulus : behind;
    return until(reading.absoluteTick - static_cast<double>(age), reading);
  }

 private:
  static Word leftOf(Word limit, size_t used) { return used < limit ? limit - static_cast<Word>(used) : 0; }

  /** Keeps the ages of the units that count at the reading, in ticks from the cell's, and that tick. */
  void look(size_t base, const Reading& reading) {
    const Word tick = load(words_, base + TICK);
    newest_ = reading.absoluteTick - static_cast<double>(cells_.time().behind(base, tick, reading));
    ages_.clear();
    if (cells_.hasRested(base, tick, reading)) return;
    const auto passed = static_cast<int64_t>(std::max(0.0, reading.absoluteTick - newest_));
    cells_.entries().eachAge(base, tick, int64_t{shape_.buckets} - passed,
                             [&](int32_t age) { ages_.push_back(age); });
  }

  /** Milliseconds until at most `room` units count, of those that `look` found. Reorders them. */
  double untilAtMost(size_t room, const Reading& reading) {
    if (ages_.size() <= room) return 0;
    const auto last = ages_.begin() + static_cast<std::ptrdiff_t>(ages_.size() - room - 1);
    std::nth_element(ages_.begin(), last, ages_.end(), std::greater<>());
    return until(newest_ - *last, reading);
  }

  /** Milliseconds until a unit of this tick, not wrapped, is out. */
  double until(double tick, const Reading& reading) const {
    const double ms = shape_.untilPosition(reading.nowMs, tick + shape_.buckets);
    return ms < 0 ? 0 : ms;
  }

  Word* const words_;
  const Shape& shape_;
  LogCells& cells_;
  std::vector<int32_t> ages_;
  /** The cell's tick, not wrapped. */
  double newest_ = 0;
};

}  // namespace millrace
