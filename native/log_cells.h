// Decisions on a log of a key's last units. The counterpart of src/algorithms/log/sliding-log.ts, which explains the
// protocol and why its steps have this order. Both run on the same words at the same time. Change both files
// together.
#pragma once

#include "log_entries.h"
#include "summed_cells.h"

namespace millrace {

class LogCells : public SummedCells<LogCells> {
  using Base = SummedCells<LogCells>;
  friend Base;

 public:
  LogCells(Word* words, const Shape& shape)
      : Base(words, shape), time_(words, shape), entries_(words, shape) {}

  const CellTime& time() const { return time_; }
  const LogEntries& entries() const { return entries_; }

  /** @see Cells.placeOf. Where to look first is in a line that a decision has to read before. */
  size_t placeOf(const Reading&) const { return ENTRIES; }

  void prefetch(size_t base, size_t place) const {
    millrace::prefetch(words_ + base);
    millrace::prefetch(words_ + base + place);
  }

  /** Fetches the head and the entry at HINT, which was prefetched. */
  void prefetchAll(size_t base, size_t place) const {
    const Word hint = read(words_, base + HINT);
    prefetch(base, place + (hint < shape_.units ? hint : 0));
  }

  /** @see Cells.attempt */
  Result attempt(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    if (!isOf(load(words_, base + ADM), way, name) || !enter(base, reading)) return Result::UNDECIDED;
    const Result result = decide(way, name, cost, limit, reading);
    return result == Result::GONE ? Result::UNDECIDED : result;
  }

  /** Whether nothing has moved the cell's tick, another one, for a period: nothing counts. */
  bool hasRested(size_t base, Word tick, const Reading& reading) const {
    if (!hasPeriods() || tick == reading.tick) return false;
    const auto period = static_cast<int32_t>(read(words_, base + PERIOD));
    return int64_t{LogEntries::periodOf(reading.nowMs)} - period > 1;
  }

  /** The date of a unit that is charged in the cell's tick e at this reading. */
  Word dateOf(Word e, const Reading& reading) const {
    if (e != reading.tick || shape_.position(reading.nowMs) == reading.absoluteTick) return e;
    return time_.after(e, 1);
  }

 private:
  static constexpr int NOTE_STEP_BITS = LOG_STEP_BITS;

  bool hasPeriods() const { return 2 * shape_.windowMs < PERIOD_MS; }

  Move move(size_t base, Word tick, const Reading& reading) {
    if (hasPeriods()) entries_.beginPeriod(base, tick, reading.nowMs);
    return time_.advance(base, tick, reading, entries_);
  }

  Word charge(size_t base, Word e, Word cost, const Reading& reading) {
    const Word date = dateOf(e, reading);
    const Word refunds = entries_.refunds(base);  // before the charge: a later refund may take it
    const int64_t free = entries_.chargeFree(base, e, cost, date);
    if (free == int64_t{cost}) {
      stamp_ = entries_.receipt(base, refunds, date != e);
      return CHARGED;
    }
    undo(base, e, cost, 0);
    return free < 0 ? LATE : OVERFLOWN;
  }

  Word stamp() const { return stamp_; }

  bool undo(size_t base, Word, Word, Word) {
    if (entries_.undo() == 0) return false;
    bumpEpoch(base);
    return true;
  }

  Sum sum(size_t base, Word e, const Reading&) const {
    Word units = 0;
    int64_t oldest = 0;  // a unit that is charged after the sum leaves after this, too
    entries_.eachAge(base, e, shape_.buckets, [&](int64_t age) {
      units++;
      oldest = std::max(oldest, age);
    });
    const int64_t leavesIn = std::min<int64_t>(shape_.buckets - oldest, (int64_t{1} << LOG_STEP_BITS) - 1);
    return {units, static_cast<Word>(e + leavesIn) & TIME};
  }

  /** No unit has left by tick e. */
  bool holds(Word note, Word e, const Reading&) const {
    const Word left = (note - e) & TIME;
    return left > 0 && left < Word{1} << LOG_STEP_BITS;
  }

  const CellTime time_;
  LogEntries entries_;
  /** The receipt of the last charge. */
  Word stamp_ = 0;
};

}  // namespace millrace
