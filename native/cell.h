// Decisions on one cell. The counterpart of src/algorithms/window/sliding-window.ts, which explains the protocol and
// why its steps have this order. Both run on the same words at the same time. Change both files together.
#pragma once

#include "ring.h"
#include "summed_cells.h"

namespace millrace {

template <typename Sums>
class Cells : public SummedCells<Cells<Sums>> {
  using Base = SummedCells<Cells<Sums>>;
  using Base::bumpEpoch;
  using Base::commit;
  using Base::full;
  using Base::isCurrent;
  using Base::isKnownFull;
  using Base::shape_;
  using Base::words_;
  friend Base;

 public:
  using Base::base;

  Cells(Word* words, const Shape& shape) : Base(words, shape), ring_(words, shape) {}

  Ring<Sums>& ring() { return ring_; }

  /** The offset from a cell's base of what a decision on this reading reads beside the head. */
  size_t placeOf(const Reading& reading) { return BUCKETS + ring_.slot(reading.tick); }

  /** Fetches what a decision reads first. */
  void prefetch(size_t base, size_t place) const {
    millrace::prefetch(words_ + base);
    millrace::prefetch(words_ + base + place);
  }

  /** Fetches all that a decision reads. */
  void prefetchAll(size_t base, size_t place) {
    prefetch(base, place);
    ring_.sums().prefetch(base, static_cast<uint32_t>(place - BUCKETS));
  }

  /** Tries the usual case of `decide` once. `cost` is 1 to `limit`. */
  Result attempt(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    const Word e = reading.tick;
    const Word v = readInOrder(words_, base + ADM);
    if (!isCurrent(v, way, name, e)) return Result::UNDECIDED;
    if ((v & COUNT) + cost > limit) return isKnownFull(base, v, e, reading) ? full(v, e) : Result::UNDECIDED;
    if (Sums::HAS_NODES) return Result::UNDECIDED;  // nodes have to be charged, too
    const size_t at = base + BUCKETS + ring_.slot(e);
    const Word b = read(words_, at);
    if ((b & (LAP | REFUNDS)) != ring_.lap() || (b & COUNT) + cost > COUNT) return Result::UNDECIDED;
    if (compareExchange(words_, at, b, b + cost) != b) return Result::UNDECIDED;
    if (isCurrent(v, way, name, e)) {
      return commit(way, name, cost, limit, e, v, 0) ? Result::ADMITTED : Result::UNDECIDED;
    }
    undo(base, e, cost, 0);
    return Result::UNDECIDED;
  }

  /**
   * Takes a charge out of its bucket. Returns false if a refund by key may have taken it, by the stamp.
   */
  bool undo(size_t base, Word e, Word cost, Word stamp) {
    if (stamp == SUNK) return false;
    const size_t extra = this->extra(base);
    const bool isTurning = stamp != 0 && add(words_, extra + GIVING, 1) >= ONE_TURN;
    const bool isSame = stamp == 0 || (!isTurning && stampWith(base, stamp & SUNK) == stamp);
    const bool isTaken = isSame && takeOut(base, e, cost, stamp);
    if (stamp != 0) add(words_, extra + GIVING, static_cast<Word>(-1));
    if (!isTaken) return false;
    ring_.sums().takeOut(base, ring_.slot(e), ring_.lap(), cost);
    bumpEpoch(base);
    return true;
  }

 private:
  static constexpr int NOTE_STEP_BITS = STEP_BITS;

  Move move(size_t base, Word tick, const Reading& reading) { return ring_.advance(base, tick, reading); }

  Word stamp() const { return stamp_; }

  Sum sum(size_t base, Word e, const Reading& reading) {
    const uint32_t sixteenth = sixteenthOf(e, reading);
    const Word units = ring_.sum(base, e, sixteenth);
    const bool isVoid = Sums::HAS_NODES && read(words_, base + TICK) != e;  // see fenwick.ts
    return {units, timeOf(e, sixteenth), isVoid};
  }

  /** The sum was made in tick e, and for the smooth edge in the same sixteenth. */
  bool holds(Word note, Word e, const Reading& reading) const {
    return (note & TIME) == timeOf(e, sixteenthOf(e, reading));
  }

  Word timeOf(Word e, uint32_t sixteenth) const {
    return (shape_.isSmooth ? (e * SIXTEENTHS) | sixteenth : e) & TIME;
  }

  uint32_t sixteenthOf(Word e, const Reading& reading) const {
    return shape_.isSmooth && e == reading.tick ? reading.sixteenth : 0;
  }

  /** Charges tick e and sets `stamp_`. Returns the new value of the bucket, LATE or OVERFLOWN. */
  Word charge(size_t base, Word e, Word cost, const Reading&) {
    if (!Sums::HAS_NODES) return chargeBucket(base, e, cost);
    const uint32_t slot = ring_.slot(e);
    const Word lap = ring_.lap();
    const Word above = ring_.sums().charge(base, e, slot, lap, cost);
    const Word charged = above == CHARGED ? chargeBucket(base, e, cost) : above;
    if (charged != LATE && charged != OVERFLOWN) return charged;
    if (above == CHARGED) ring_.sums().takeOut(base, slot, lap, cost);
    bumpEpoch(base);  // a node may have been charged for a while
    return charged;
  }

  Word chargeBucket(size_t base, Word e, Word cost) {
    const size_t at = base + BUCKETS + ring_.slot(e);
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word b = load(words_, at);
      Word charged;
      if ((b & LAP) == ring_.lap()) {
        if ((b & COUNT) + cost > COUNT) return OVERFLOWN;
        if (refundsOf(b) == SUNK) return chargeSunk(base, at, cost);
        stamp_ = stampOf(base, b);
        charged = b + cost;
      } else {
        // The tick is read after b: see "A bucket of another lap" in sliding-window.ts.
        if (shape_.distance(read(words_, base + TICK), e) >= ring_.slots) return LATE;
        stamp_ = 0;
        charged = ring_.lap() | cost;
      }
      if (compareExchange(words_, at, b, charged) == b) return charged;
    }
    return LATE;
  }

  /** Returns false if the bucket is of another lap, or if its mark is not the stamp's. */
  bool takeOut(size_t base, Word e, Word cost, Word stamp) {
    const size_t at = base + BUCKETS + ring_.slot(e);
    const Word expected = ring_.lap() | (stamp & SUNK) * ONE_REFUND;
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word b = load(words_, at);
      if ((b & (LAP | REFUNDS)) != expected || (b & COUNT) < cost) return false;
      if (compareExchange(words_, at, b, b - cost) == b) return true;
    }
    return false;
  }

  // Refund marks: src/algorithms/window/refund-marks.ts explains them. Only TypeScript refunds by key.

  /**
   * Charges a sunk bucket of the present lap. If this thread is alone, it also turns the mark to 1. Returns
   * LATE if another thread has changed the bucket.
   */
  Word chargeSunk(size_t base, size_t at, Word cost) {
    const size_t giving = extra(base) + GIVING;
    const bool isAlone = add(words_, giving, ONE_TURN) == 0;
    const Word b = load(words_, at);
    Word charged = LATE;
    if ((b & LAP) == ring_.lap() && refundsOf(b) == SUNK && (b & COUNT) + cost <= COUNT) {
      if (isAlone) add(words_, extra(base) + GENERATION, 1);
      const Word turned = isAlone ? b - (SUNK - 1) * ONE_REFUND : b;
      stamp_ = stampOf(base, turned);
      if (compareExchange(words_, at, b, turned + cost) == b) charged = turned + cost;
    }
    add(words_, giving, -ONE_TURN);
    return charged;
  }

  /** The stamp of a charge of bucket `b`. Reads the generation after the bucket. */
  Word stampOf(size_t base, Word b) const {
    const Word mark = refundsOf(b);
    return mark == 0 || mark == SUNK ? mark : stampWith(base, mark);
  }

  /** The stamp of a mark in the cell's present generation. */
  Word stampWith(size_t base, Word mark) const {
    return (load(words_, extra(base) + GENERATION) << STAMP_BITS) | mark;
  }

  /** The index of a way's extra words, GENERATION and GIVING. */
  size_t extra(size_t base) const {
    return shape_.extraAt + (base - shape_.waysAt) / shape_.wayWords * EXTRA_WORDS;
  }

  Ring<Sums> ring_;
  /** The stamp of the last charge. */
  Word stamp_ = 0;
};

}  // namespace millrace
