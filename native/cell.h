// Decisions on one cell. The counterpart of src/algorithms/sliding-window.ts, which explains the protocol and
// why its steps have this order. Both run on the same words at the same time. Change both files together.
#pragma once

#include "keyed_cells.h"
#include "ring.h"

namespace millrace {

template <typename Sums>
class Cells : public KeyedCells {
 public:
  Cells(Word* words, const Shape& shape) : KeyedCells(words, shape), ring_(words, shape) {}

  Ring<Sums>& ring() { return ring_; }

  /** What giving back the last admission needs to know: a receipt (src/algorithms/algorithm.ts). */
  Word receipt() const { return decided_.stamp; }

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

  /** Whether an admission word says blocked. */
  static bool isShut(Word v) { return (v & COUNT) == BLOCKED; }

  /** Whether the admission word `v` says blocked and the block has not ended. */
  bool isBlocked(size_t base, Word v, double nowMs) {
    return isShut(v) && isBefore(nowMs, untilOf(base));
  }

  /** Moves a cell's tick forward to the reading's. Returns false if that needs a newer reading. */
  bool enter(size_t base, const Reading& reading) {
    const Word tick = read(words_, base + TICK);  // relaxed: a stale tick makes the compare-exchange fail
    if (tick == reading.tick) return true;
    const auto [moved, isFarAhead] = ring_.advance(base, tick, reading);
    const bool passed = moved >= int64_t{1} << STEP_BITS;
    if (passed || (moved > 0 && tick >> STEP_BITS != reading.tick >> STEP_BITS)) bumpEpoch(base);
    return !isFarAhead;
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
   * Admits `cost` units (1 to `limit`). Returns FULL if they do not fit, or GONE if the way is not the key's.
   */
  Result decide(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    for (;;) {
      const Word v = load(words_, base + ADM);
      if (!isOf(v, way, name)) return Result::GONE;
      const Word e = read(words_, base + TICK);
      if ((v & COUNT) + cost > limit) {
        if (isKnownFull(base, v, e, reading)) return full(v, e);
        resum(base, v, e, reading);
        continue;  // v has changed, by this sum or by another thread's
      }
      const Word charged = charge(base, e, cost);
      if (charged == LATE) continue;
      if (charged == OVERFLOWN) return full(v, e);
      if (commit(way, name, cost, limit, e, v, stamp_)) return Result::ADMITTED;
    }
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
  /** Charges tick e and sets `stamp_`. Returns the new value of the bucket, LATE or OVERFLOWN. */
  Word charge(size_t base, Word e, Word cost) {
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
    for (;;) {
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
  }

  /** Adds a charge of tick e to the admission word. Returns false if it had to take the charge out again. */
  bool commit(size_t way, Name name, Word cost, Word limit, Word e, Word v, Word stamp) {
    const size_t base = this->base(way);
    decided_ = {e, stamp, v + cost, 0};
    Word x = compareExchange(words_, base + ADM, v, v + cost);
    if (x == v) return true;
    while (isOf(x, way, name) && read(words_, base + TICK) == e && (x & COUNT) + cost <= limit) {
      decided_.adm = x + ONE_EPOCH + cost;
      const Word found = compareExchange(words_, base + ADM, x, decided_.adm);
      if (found == x) return true;
      x = found;
    }
    undo(base, e, cost, stamp);
    return false;
  }

  /** Returns false if the bucket is of another lap, or if its mark is not the stamp's. */
  bool takeOut(size_t base, Word e, Word cost, Word stamp) {
    const size_t at = base + BUCKETS + ring_.slot(e);
    const Word expected = ring_.lap() | (stamp & SUNK) * ONE_REFUND;
    for (;;) {
      const Word b = load(words_, at);
      if ((b & (LAP | REFUNDS)) != expected || (b & COUNT) < cost) return false;
      if (compareExchange(words_, at, b, b - cost) == b) return true;
    }
  }

  // Refund marks: src/algorithms/refund-marks.ts explains them. Only TypeScript refunds by key.

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

  /**
   * Called after a count has left a bucket, because sums made before are too high. The new epoch makes the
   * sums in progress fail. Then the note ends.
   */
  void bumpEpoch(size_t base) {
    for (;;) {
      const Word v = load(words_, base + ADM);
      if ((v & STATE) != LIVE) return;
      if (compareExchange(words_, base + ADM, v, v + ONE_EPOCH) == v) break;
    }
    write(words_, base + AS_OF, NO_NOTE);
  }

  /**
   * Whether `v`, which has no room, is up to date: the key is blocked, or its buckets were summed in this
   * very tick.
   */
  bool isKnownFull(size_t base, Word v, Word e, const Reading& reading) {
    // Relaxed: a stale note is of another epoch or time, and costs one sum.
    if (read(words_, base + AS_OF) == noteOf(v, e, sixteenthOf(e, reading))) return true;
    return isBlocked(base, v, reading.nowMs);
  }

  /** Replaces the total of `v` by the sum as of tick e, with a new epoch, and writes the note. */
  void resum(size_t base, Word v, Word e, const Reading& reading) {
    const uint32_t sixteenth = sixteenthOf(e, reading);
    const Word sum = ring_.sum(base, e, sixteenth);
    if (Sums::HAS_NODES && read(words_, base + TICK) != e) return;  // see fenwick.ts
    const Word next = ((v & ~COUNT) + ONE_EPOCH) | sum;
    if (compareExchange(words_, base + ADM, v, next) != v) return;
    write(words_, base + AS_OF, noteOf(next, e, sixteenth));
  }

  Word noteOf(Word v, Word e, uint32_t sixteenth) const {
    return (v & EPOCH) | NOTED | ((shape_.isSmooth ? (e * SIXTEENTHS) | sixteenth : e) & TIME);
  }

  uint32_t sixteenthOf(Word e, const Reading& reading) const {
    return shape_.isSmooth && e == reading.tick ? reading.sixteenth : 0;
  }

  Ring<Sums> ring_;
  /** The stamp of the last charge. */
  Word stamp_ = 0;
};

}  // namespace millrace
