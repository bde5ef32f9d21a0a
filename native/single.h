// One decision at a time. What it takes and what comes out of it stand in `Call`, which both sides see: so a call from
// JavaScript has no arguments to be checked and no value to be made, and costs a third of a reading of the clock.
//
// The lines of memory that a decision waits for (its set's names, the head of its way, its bucket) are asked for before the
// clock is read, which takes as long as they do. What takes a new cell, a newer reading of the clock, or the whole of a table
// is left to TypeScript, as batches leave it.
#pragma once

#include "batch.h"

namespace millrace {

/** A call's place in shared memory. Every field is read once: who else writes there may change it between two looks. */
class Call {
 public:
  explicit Call(Word* words) : words_(words) {}

  Word word(Word field) const { return read(words_, field); }
  void put(Word field, Word value) { write(words_, field, value); }
  /** Doubles stand at half of their index, in front of the words. */
  double number(Word field) const { return std::atomic_ref(doubles()[field]).load(std::memory_order_relaxed); }
  void put(Word field, double value) { std::atomic_ref(doubles()[field]).store(value, std::memory_order_relaxed); }

 private:
  double* doubles() const { return reinterpret_cast<double*>(words_); }

  Word* const words_;
};

/** Decides on one arena, for as long as it lives. */
class Single {
 public:
  virtual ~Single() = default;
  virtual void run(Call call) = 0;
};

/** On cells that are summed by `Sums`. */
template <typename Sums>
class SingleBy final : public Single {
 public:
  SingleBy(Word* words, const Shape& shape)
      : words_(words),
        shape_(shape),
        cells_(words, shape_),
        table_(words, shape_, cells_),
        forecast_(words, shape_, cells_),
        ways_(size_t{shape.sets} * WAYS_PER_SET),
        reading_(shape_, 0) {}

  void run(Call call) override {
    const Word what = call.word(CALL_OPERATION);
    if (what == OPERATION_CHECK) check(call);
    else if (what == OPERATION_USAGE) usage(call);
    else if (what == OPERATION_RETRY_AFTER) untilFits(call);
    else call.put(CALL_STATUS, STATUS_UNANSWERED);
  }

 private:
  /** STATUS_REFUSED or STATUS_DONE; STATUS_UNANSWERED: not decided, and nothing charged. Flattened: half of it would be calls. */
  [[gnu::flatten]] void check(Call call) {
    const Name name{call.word(CALL_LO), call.word(CALL_HI)};
    size_t way = call.word(CALL_WAY);
    if (way >= ways_) way = table_.homeOf(name);
    fetch(way);
    call.put(CALL_STATUS, STATUS_UNANSWERED);
    const Word cost = call.word(CALL_COST);
    const Word limit = read(words_, HEADER_LIMIT);
    if (!take(call) || cost == 0 || cost > limit || limit > MAX_TOTAL) return;
    if (read(words_, NAMES_AT + way) != name.lo) {
      const int64_t found = table_.guess(name);
      if (found == NO_WAY) return;
      way = static_cast<size_t>(found);
    }
    Found found = cells_.attempt(way, name, cost, limit, reading_);
    while (found == Found::UNDECIDED || found == Found::GONE) {
      const int64_t live = table_.findLive(name);
      if (live == NO_WAY) return;
      way = static_cast<size_t>(live);
      if (!cells_.enter(cells_.base(way), reading_)) return;
      found = cells_.decide(way, name, cost, limit, reading_);
    }
    call.put(CALL_WAY, static_cast<Word>(way));
    call.put(CALL_LIMIT, limit);
    call.put(CALL_TICK, cells_.charged().tick);
    call.put(CALL_REFUNDS, cells_.charged().refunds);
    call.put(CALL_ADM, cells_.charged().adm);
    call.put(CALL_UNTIL, cells_.charged().until);
    call.put(CALL_STATUS, found == Found::ADMITTED ? STATUS_DONE : STATUS_REFUSED);
  }

  /** ANSWER: units of the key in the last MS, which are at most the window. */
  void usage(Call call) {
    const double lastMs = call.number(CALL_MS);
    const int64_t way = table_.findLive({call.word(CALL_LO), call.word(CALL_HI)});
    const bool isSound = take(call);
    const bool isThere = isSound && way != NO_WAY;
    call.put(CALL_ANSWER, isThere ? forecast_.usedInLast(cells_.base(static_cast<size_t>(way)), reading_, lastMs) : 0.0);
    call.put(CALL_STATUS, isSound ? STATUS_DONE : STATUS_UNANSWERED);
  }

  /** ANSWER: milliseconds from MS until COST, refused then by LIMIT, fits; nothing where WAY is not as it was left at TICK and ADM. */
  void untilFits(Call call) {
    const Word cost = call.word(CALL_COST);
    const Word limit = call.word(CALL_LIMIT);
    const size_t way = call.word(CALL_WAY);
    const Word adm = call.word(CALL_ADM);
    const Word tick = call.word(CALL_TICK);
    const double atMs = call.number(CALL_MS);
    call.put(CALL_STATUS, STATUS_UNANSWERED);
    if (way >= ways_ || cost > limit || limit > MAX_TOTAL || !Reading::isSound(shape_, atMs)) return;
    if (!cells_.isUnchanged(way, {call.word(CALL_LO), call.word(CALL_HI)}, adm, tick)) return;
    const double ms = forecast_.untilFits(cells_.base(way), cost, limit, Reading(shape_, atMs));
    if (std::isnan(ms) || !cells_.isStillUnchanged(way, adm, tick)) return;
    call.put(CALL_ANSWER, ms);
    call.put(CALL_STATUS, STATUS_DONE);
  }

  void fetch(size_t way) {
    const size_t head = cells_.base(way);
    prefetch(words_ + head);
    prefetch(words_ + head + BUCKETS + cells_.ring().slot(reading_.tick));
    prefetch(words_ + NAMES_AT + way);
  }

  /** The call's reading, or one of our own. Most fall into the tick of the one before, as in src/core/reading.ts. */
  bool take(Call call) {
    const bool isOwn = READS_CLOCK && call.word(CALL_READS_CLOCK) != 0;
    const double nowMs = isOwn ? monotonicMs() : call.number(CALL_NOW_MS);
    if (isOwn) call.put(CALL_NOW_MS, nowMs);
    if (nowMs >= from_ && nowMs < to_ && !shape_.isSmooth) {
      reading_.nowMs = nowMs;
      return true;
    }
    if (!Reading::isSound(shape_, nowMs)) return false;
    reading_ = Reading(shape_, nowMs);
    const double end = (reading_.absoluteTick + 1) * shape_.granuleMs;
    const double to = end - std::abs(end) * TICK_END_MARGIN;
    from_ = nowMs;
    to_ = std::floor(shape_.position(to)) == reading_.absoluteTick ? to : nowMs;
    return true;
  }

  Word* const words_;
  const Shape shape_;
  Cells<Sums> cells_;
  Table<Sums> table_;
  Forecast<Sums> forecast_;
  const size_t ways_;
  Reading reading_;
  /** All between these is of the reading's tick; nothing is, at first. */
  double from_ = 1;
  double to_ = 0;
};

}  // namespace millrace
