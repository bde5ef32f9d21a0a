// Figures of a cell whose counts are all in its admission word. The counterpart of
// src/algorithms/word/word-estimates.ts. The two words of a decision say all that its figures need, so these are
// those of the moment of the decision, whatever other threads do.
#pragma once

#include "estimates.h"
#include "word_cells.h"

namespace millrace {

/** The methods are those of Estimates. */
template <typename Meter>
class WordEstimates {
 public:
  WordEstimates(Word* words, const Shape&, WordCells<Meter>& cells) : words_(words), cells_(cells) {}

  Word remaining(size_t way, Word limit, const Reading& reading) {
    const size_t base = cells_.base(way);
    const auto [w, stamp, v, until] = cells_.decided();
    if (cells_.isBlocked(base, v, reading.nowMs)) return 0;
    return leftOf(limit, isAllOver(base, w, reading) ? 0 : meter().unitsAt(v, w, reading, limit));
  }

  Figures figures(size_t way, bool isAdmitted, Word cost, Word limit, const Reading& reading) {
    const auto [w, stamp, v, until] = cells_.decided();
    const Word left = remaining(way, limit, reading);
    if (isAdmitted) return {left, 0, meter().untilOver(v, w, reading)};
    const double fitsMs = meter().untilRoom(v, w, cost, limit, reading);
    return {left, fitsMs < 1 ? 1 : fitsMs, meter().untilOver(v, w, reading)};
  }

  /** The word does not say when its units were charged: all that count. */
  double usedInLast(size_t base, const Reading& reading, double) {
    const Word limit = load(words_, HEADER_CURRENT) & CURRENT_LIMIT;
    return view(base, reading, [&](Word v, Word w) { return meter().unitsAt(v, w, reading, limit); });
  }

  double untilFits(size_t base, Word cost, Word limit, const Reading& reading) {
    return view(base, reading, [&](Word v, Word w) { return meter().untilRoom(v, w, cost, limit, reading); });
  }

  double untilGone(const Decided& decided, const Reading& reading) {
    return isSettled(decided.tick) ? meter().untilOver(decided.adm, decided.tick, reading) : 0;
  }

 private:
  const Meter& meter() const { return cells_.meter(); }

  static Word leftOf(Word limit, Word used) { return used < limit ? limit - used : 0; }

  bool isAllOver(size_t base, Word w, const Reading& reading) const {
    return !isSettled(w) || meter().isOver(cells_.time().behind(base, tickOf(w), reading));
  }

  /** Computes by both words of a cell, read together; 0 if all of its counts are over. */
  template <typename Compute>
  double view(size_t base, const Reading& reading, Compute compute) const {
    for (Word tries = 0;; tries++) {
      const Word v = load(words_, base + ADM);
      const Word w = read(words_, base + TICK);
      if (tries == MOST_TRIES || isStill(words_, base + ADM, v)) return isAllOver(base, w, reading) ? 0 : compute(v, w);
    }
  }

  Word* const words_;
  WordCells<Meter>& cells_;
};

}  // namespace millrace
