// Carries out one operation at a time. Its arguments and its result are in the memory of `Call`, which both
// sides see. So a call from JavaScript has no arguments to check and creates no value. It costs a third of a
// reading of the clock.
//
// A decision waits for three cache lines: the names of its set, the head of its way, and its bucket. They are
// prefetched before the clock is read, which takes as long. TypeScript decides what needs a new cell, a newer
// reading of the clock or the whole table, as it does for batches.
#pragma once

#include <memory>
#include <vector>

#include "clock.h"
#include "decider.h"

namespace millrace {

/**
 * The shared memory of a call. Each field is read only once, because other code that has the memory may
 * change it between two reads.
 */
class Call {
 public:
  explicit Call(Word* words) : words_(words) {}

  Word word(Word field) const { return read(words_, field); }
  void put(Word field, Word value) { write(words_, field, value); }
  /** Fields of doubles count in doubles and come before the words. */
  double number(Word field) const { return doubleAt(field).load(std::memory_order_relaxed); }
  void put(Word field, double value) { doubleAt(field).store(value, std::memory_order_relaxed); }

 private:
  std::atomic_ref<double> doubleAt(Word field) const {
    return std::atomic_ref(reinterpret_cast<double*>(words_)[field]);
  }

  Word* const words_;
};

/** Operations on one arena. */
class Single {
 public:
  virtual ~Single() = default;
  virtual void run(Call call) = 0;
  /** Fetches the cache lines that a decision on the key reads, and those of its figures. */
  virtual void prefetch(Word lo, Word way, bool withFigures) = 0;
};

template <typename Algorithm>
class SingleBy final : public Single {
 public:
  SingleBy(Word* words, const Shape& shape)
      : words_(words),
        shape_(shape),
        decider_(words, shape_),
        ways_(size_t{shape.sets} * WAYS_PER_SET),
        reading_(shape_, 0) {}

  void prefetch(Word lo, Word way, bool withFigures) override { prefetchCell(hintOf(lo, way), withFigures); }

  void run(Call call) override {
    const Word operation = call.word(CALL_OPERATION);
    if (operation == OPERATION_CHECK || operation == OPERATION_CHECK_WITHIN) {
      const Word demand = call.word(CALL_DEMAND);
      if (demand == 0) return check<false>(call, operation);
      call.put(CALL_DEMAND, demand - 1);
      return check<true>(call, operation);
    }
    if (operation == OPERATION_USAGE) usage(call);
    else if (operation == OPERATION_RETRY_AFTER) retryAfter(call);
    else call.put(CALL_STATUS, STATUS_UNANSWERED);
  }

 private:
  /** A cell of up to 8 lines is prefetched whole if its buckets are to be summed. */
  static constexpr size_t MOST_PREFETCHED = 8 * LINE_WORDS;

  /**
   * Sets STATUS to DONE (admitted) or REFUSED; or to UNANSWERED, and then nothing was charged. Flattened,
   * because calls would take half of its time. A template, so that a decision without figures spends no time
   * on them.
   */
  template <bool WITH_FIGURES>
  [[gnu::flatten]] void check(Call call, Word operation) {
    const Name name{call.word(CALL_LO), call.word(CALL_HI)};
    const size_t hint = hintOf(name.lo, call.word(CALL_WAY));
    prefetchCell(hint, WITH_FIGURES);
    call.put(CALL_STATUS, STATUS_UNANSWERED);
    const Word cost = call.word(CALL_COST);
    if (!takeReading(call)) return;
    // After the reading: see "The reading" in src/algorithms/conversion.ts.
    const Word current = load(words_, HEADER_CURRENT);
    const Word limit = operation == OPERATION_CHECK ? current & CURRENT_LIMIT : call.word(CALL_LIMIT);
    if (recordIn(current) != shape_.record || cost == 0 || cost > limit || limit > MAX_TOTAL) return;
    auto way = static_cast<int64_t>(hint);
    if (read(words_, NAMES_AT + hint) != name.lo) {
      way = decider_.table().guess(name);
      if (way == NO_WAY) return;
    }
    const Result result = decider_.decide(way, name, cost, limit, reading_);
    if (result != Result::ADMITTED && result != Result::FULL) return;
    const Decided& decided = decider_.cells().decided();
    call.put(CALL_WAY, static_cast<Word>(way));
    call.put(CALL_LIMIT, limit);
    call.put(CALL_TICK, decided.tick);
    call.put(CALL_STAMP, decided.stamp);
    call.put(CALL_ADM, decided.adm);
    call.put(CALL_UNTIL, decided.until);
    const Word refusal = call.word(CALL_LEAVES_REFUSALS) != 0 ? STATUS_UNANSWERED : STATUS_REFUSED;
    const Word admission = isSuspect(call, decided, limit) ? STATUS_DONE | STATUS_SUSPECT : STATUS_DONE;
    const Word status = result == Result::ADMITTED ? admission : refusal;
    const bool hasFigures = WITH_FIGURES && status != STATUS_UNANSWERED &&
                            putFigures(call, static_cast<size_t>(way), result == Result::ADMITTED, cost, limit);
    call.put(CALL_STATUS, hasFigures ? status | STATUS_FIGURES : status);
  }

  /** Whether an admission may have left its key near the limit (src/engines/inline/near-limit.ts). */
  bool isSuspect(Call call, const Decided& decided, Word limit) {
    return limit != call.word(CALL_SUSPECT_LIMIT) ||
           decider_.cells().mostIn(decided.adm, decided.tick) >= call.word(CALL_SUSPECT_FROM);
  }

  /**
   * Computes the figures of the decision that was just made, while its cache lines are near. Returns false
   * for those that TypeScript computes when they are read: of a refusal by a block, and of times that are too
   * far apart.
   */
  bool putFigures(Call call, size_t way, bool isAdmitted, Word cost, Word limit) {
    if (!isAdmitted && decider_.cells().isShut(decider_.cells().decided().adm)) return false;
    const Figures figures = decider_.estimates().figures(way, isAdmitted, cost, limit, reading_);
    call.put(CALL_REMAINING, figures.remaining);
    call.put(CALL_MS, figures.retryAfterMs);
    call.put(CALL_ANSWER, figures.resetMs);
    return !std::isnan(figures.retryAfterMs) && !std::isnan(figures.resetMs);
  }

  /** Sets ANSWER to the key's units in the last MS, which is at most the window. */
  void usage(Call call) {
    const Name name{call.word(CALL_LO), call.word(CALL_HI)};
    const double lastMs = call.number(CALL_MS);
    call.put(CALL_STATUS, STATUS_UNANSWERED);
    if (!takeReading(call)) return;
    const Word current = load(words_, HEADER_CURRENT);
    if (recordIn(current) != shape_.record) return;
    const int64_t way = decider_.table().findLive(name);
    double used = 0;
    if (way == NO_WAY) {
      if (!decider_.isAbsent(current)) return;  // TypeScript converts a cell of another record
    } else {
      const auto& cells = decider_.cells();
      const size_t base = cells.base(static_cast<size_t>(way));
      used = decider_.estimates().usedInLast(base, reading_, lastMs);
      // The name is read after the cell's tick, which a conversion changes after the name.
      if (!cells.isOf(load(words_, base + ADM), static_cast<size_t>(way), name)) return;
    }
    call.put(CALL_ANSWER, used);
    call.put(CALL_STATUS, STATUS_DONE);
  }

  /**
   * Sets ANSWER to the milliseconds from MS, when LIMIT refused COST, until COST fits. Answers only if the
   * cell still has the TICK and ADM of the refusal.
   */
  void retryAfter(Call call) {
    auto& cells = decider_.cells();
    const Word cost = call.word(CALL_COST);
    const Word limit = call.word(CALL_LIMIT);
    const size_t way = call.word(CALL_WAY);
    const Word adm = call.word(CALL_ADM);
    const Word tick = call.word(CALL_TICK);
    const double atMs = call.number(CALL_MS);
    call.put(CALL_STATUS, STATUS_UNANSWERED);
    if (way >= ways_ || cost > limit || limit > MAX_TOTAL || !Reading::isSound(shape_, atMs)) return;
    if (!cells.isUnchanged(way, {call.word(CALL_LO), call.word(CALL_HI)}, adm, tick)) return;
    const double ms = decider_.estimates().untilFits(cells.base(way), cost, limit, Reading(shape_, atMs));
    if (std::isnan(ms) || !cells.isStillUnchanged(way, adm, tick)) return;
    call.put(CALL_ANSWER, ms);
    call.put(CALL_STATUS, STATUS_DONE);
  }

  /** The way to look at first: `way`, or the key's home if there is no such way. */
  size_t hintOf(Word lo, Word way) {
    return static_cast<size_t>(way) < ways_ ? way : decider_.table().homeOf({lo, 0});
  }

  void prefetchCell(size_t way, bool withFigures) {
    const size_t head = decider_.cells().base(way);
    decider_.cells().prefetch(head, decider_.cells().placeOf(reading_));
    millrace::prefetch(words_ + NAMES_AT + way);
    if (!withFigures) return;
    const size_t end = head + std::min<size_t>(shape_.wayWords, MOST_PREFETCHED);
    for (size_t at = head + LINE_WORDS; at < end; at += LINE_WORDS) millrace::prefetch(words_ + at);
  }

  /**
   * Takes the caller's reading, or reads the clock if the caller asks for that. Returns false if the reading
   * is out of range. Most readings fall into the same tick as the one before, as in src/core/reading.ts.
   */
  bool takeReading(Call call) {
    const bool readsClock = READS_CLOCK && call.word(CALL_READS_CLOCK) != 0;
    const double nowMs = readsClock ? monotonicMs() : call.number(CALL_NOW_MS);
    if (readsClock) call.put(CALL_NOW_MS, nowMs);
    if (nowMs >= tickFromMs_ && nowMs < tickToMs_ && !shape_.isSmooth) {
      reading_.nowMs = nowMs;
      return true;
    }
    if (!Reading::isSound(shape_, nowMs)) return false;
    reading_ = Reading(shape_, nowMs);
    const double end = shape_.startMs(reading_.absoluteTick + 1);
    const double to = end - (std::abs(end) + std::abs(shape_.offsetMs)) * TICK_END_MARGIN;
    tickFromMs_ = nowMs;
    tickToMs_ = std::floor(shape_.position(to)) == reading_.absoluteTick ? to : nowMs;
    return true;
  }

  Word* const words_;
  const Shape shape_;
  Decider<Algorithm> decider_;
  const size_t ways_;
  Reading reading_;
  /**
   * Every time from `tickFromMs_` to before `tickToMs_` is in the tick of `reading_`. No time is, at first.
   */
  double tickFromMs_ = 1;
  double tickToMs_ = 0;
};

/**
 * Decides one request by several rules in order. `calls` has a `Call` for each rule. The first `Call` has the
 * key, the hint and the reading for all rules. Each `Call` has its own COST, OPERATION, LIMIT and DEMAND. The
 * function stops at the first rule that does not admit the cost. Before the first rule decides, the cache
 * lines of the others are prefetched.
 */
inline void runInOrder(const std::vector<std::unique_ptr<Single>>& rules, Word* calls) {
  const Call first(calls);
  const Word lo = first.word(CALL_LO);
  const Word hi = first.word(CALL_HI);
  Word hint = first.word(CALL_WAY);
  for (size_t i = 1; i < rules.size(); i++) {
    rules[i]->prefetch(lo, hint, Call(calls + i * CALL_WORDS).word(CALL_DEMAND) != 0);
  }
  for (size_t i = 0; i < rules.size(); i++) {
    Call call(calls + i * CALL_WORDS);
    if (i > 0) {
      call.put(CALL_LO, lo);
      call.put(CALL_HI, hi);
      call.put(CALL_WAY, hint);
      call.put(CALL_NOW_MS, first.number(CALL_NOW_MS));
    }
    rules[i]->run(call);
    if ((call.word(CALL_STATUS) & STATUS_DONE) == 0) return;
    hint = call.word(CALL_WAY);
  }
}

}  // namespace millrace
