// Deciding on a cell: the protocol of src/algorithms/sliding-window.ts, which tells it and argues its order, on the same
// words at the same time. Whatever is changed here is changed there.
//
// What stands above the buckets (`Sums`) is charged in `charge`, taken out of in `undo`, and read in Ring::sum.
#pragma once

#include "ring.h"

namespace millrace {

/** What `attempt` and `decide` found; the last two are for whoever calls them. */
enum class Found { UNDECIDED, GONE, FULL, ADMITTED, NEEDS_READING, BAD_COST };

/** A key's fingerprint. */
struct Name {
  Word lo;
  Word hi;
};

/**
 * What a decision left: the cell's tick, in which an admission was charged, and the charge's stamp (src/algorithms/marks.ts), which
 * giving back needs; the admission word, which figures need, and UNTIL of the block that refused.
 */
struct Charge {
  Word tick;
  Word refunds;
  Word adm;
  Word until;
};

template <typename Sums>
class Cells {
 public:
  Cells(Word* words, const Shape& shape) : words_(words), shape_(shape), ring_(words, shape) {}

  Ring<Sums>& ring() { return ring_; }

  /** The last one. */
  const Charge& charged() const { return charged_; }

  size_t base(size_t way) const { return shape_.waysAt + way * shape_.wayWords; }

  /** Brings a cell's tick up to the reading; false where that takes a newer reading. */
  bool enter(size_t base, const Reading& reading) {
    const Word tick = read(words_, base + TICK);  // relaxed: a tick read late makes the compare-exchange fail
    if (tick == reading.tick) return true;
    const auto [moved, isFarAhead] = ring_.advance(base, tick, reading);
    const bool passed = moved >= int64_t{1} << STEP_BITS;
    if (passed || (moved > 0 && tick >> STEP_BITS != reading.tick >> STEP_BITS)) stale(base);
    return !isFarAhead;
  }

  /** The usual case of `decide`, tried once, before anything else. `cost` is 1 to `limit`. */
  Found attempt(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    const Word e = reading.tick;
    const Word v = readInOrder(words_, base + ADM);
    if (!stands(v, way, name, e)) return Found::UNDECIDED;
    if ((v & COUNT) + cost > limit) return isKnownFull(base, v, e, reading) ? full(v, e) : Found::UNDECIDED;
    if (Sums::HAS_NODES) return Found::UNDECIDED;  // to charge, too
    const size_t at = base + BUCKETS + ring_.slot(e);
    const Word b = read(words_, at);
    if ((b & (LAP | REFUNDS)) != ring_.lap() || (b & COUNT) + cost > COUNT) return Found::UNDECIDED;
    if (compareExchange(words_, at, b, b + cost) != b) return Found::UNDECIDED;
    if (stands(v, way, name, e)) {
      return commit(way, name, cost, limit, e, v, 0) ? Found::ADMITTED : Found::UNDECIDED;
    }
    undo(base, e, cost, 0);
    return Found::UNDECIDED;
  }

  /** Admits `cost` units (1 to `limit`) of the key whose way this may be, or says FULL or GONE. */
  Found decide(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    for (;;) {
      const Word v = load(words_, base + ADM);
      if (!isOf(v, way, name)) return Found::GONE;
      const Word e = read(words_, base + TICK);
      if ((v & COUNT) + cost > limit) {
        if (isKnownFull(base, v, e, reading)) return full(v, e);
        resum(base, v, e, reading);
        continue;  // whether this sum went through or another's: v has changed
      }
      const Word charged = charge(base, e, cost);
      if (charged == LATE) continue;
      if (charged == OVERFLOWN) return full(v, e);
      if (commit(way, name, cost, limit, e, v, stamp_)) return Found::ADMITTED;
    }
  }

  /** The key's way: LIVE, and its name read after the admission word `v`. */
  bool isOf(Word v, size_t way, Name name) const {
    if ((v & STATE) != LIVE || read(words_, NAMES_AT + way) != name.lo) return false;
    return read(words_, base(way) + HI) == name.hi;
  }

  /** Whether no operation on the way has ended since its admission word was `v` and its tick `e`. */
  bool isUnchanged(size_t way, Name name, Word v, Word e) const {
    return load(words_, base(way) + ADM) == v && stands(v, way, name, e);
  }

  /** The same after the way's buckets have been read. Means something only where `isUnchanged` held before. */
  bool isStillUnchanged(size_t way, Word v, Word e) const {
    const size_t base = this->base(way);
    return isStill(words_, base + ADM, v) && read(words_, base + TICK) == e;
  }

  /** Takes down `v`, the way's admission word, and its tick, as a decision does. */
  void see(size_t way, Word v) { full(v, read(words_, base(way) + TICK)); }

  /** Whether `v`, the cell's admission word, is blocked and its block not over. */
  bool isShut(size_t base, Word v, double nowMs) {
    return (v & COUNT) == BLOCKED && isBlockedAt(base, nowMs);
  }

  /** Takes a charge out of its bucket, unless a refund by key may have done so: its stamp tells. */
  bool undo(size_t base, Word e, Word cost, Word stamp) {
    if (stamp == SUNK) return false;
    const size_t beside = this->beside(base);
    const bool isTurning = stamp != 0 && add(words_, beside + GIVING, 1) >= ONE_TURN;
    const bool isSame =
        stamp == 0 || (!isTurning && ((load(words_, beside + GENERATION) << STAMP_BITS) | (stamp & SUNK)) == stamp);
    const bool isTaken = isSame && takeOut(base, e, cost, stamp);
    if (stamp != 0) add(words_, beside + GIVING, static_cast<Word>(-1));
    if (!isTaken) return false;
    ring_.sums().takeOut(base, ring_.slot(e), ring_.lap(), cost);
    stale(base);
    return true;
  }

 private:
  Found full(Word v, Word e) {
    charged_.adm = v;
    charged_.tick = e;
    return Found::FULL;
  }

  bool stands(Word v, size_t way, Name name, Word e) const {
    return read(words_, base(way) + TICK) == e && isOf(v, way, name);
  }

  /** Charges tick e: what stands in its bucket now, with its stamp; or LATE, or OVERFLOWN. */
  Word charge(size_t base, Word e, Word cost) {
    if (!Sums::HAS_NODES) return chargeBucket(base, e, cost);
    const uint32_t slot = ring_.slot(e);
    const Word lap = ring_.lap();
    const Word above = ring_.sums().charge(base, e, slot, lap, cost);
    const Word charged = above == CHARGED ? chargeBucket(base, e, cost) : above;
    if (charged != LATE && charged != OVERFLOWN) return charged;
    if (above == CHARGED) ring_.sums().takeOut(base, slot, lap, cost);
    stale(base);  // some node may have been charged for a while
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
        // After the load of b: see "A bucket of another lap" in sliding-window.ts.
        if (shape_.distance(read(words_, base + TICK), e) >= ring_.slots) return LATE;
        stamp_ = 0;
        charged = ring_.lap() | cost;
      }
      if (compareExchange(words_, at, b, charged) == b) return charged;
    }
  }

  /** After a charge in tick e, with its stamp; false: it has been taken out again. */
  bool commit(size_t way, Name name, Word cost, Word limit, Word e, Word v, Word stamp) {
    const size_t base = this->base(way);
    charged_ = {e, stamp, v + cost, 0};
    Word x = compareExchange(words_, base + ADM, v, v + cost);
    if (x == v) return true;
    while (isOf(x, way, name) && read(words_, base + TICK) == e && (x & COUNT) + cost <= limit) {
      charged_.adm = x + ONE_EPOCH + cost;
      const Word found = compareExchange(words_, base + ADM, x, charged_.adm);
      if (found == x) return true;
      x = found;
    }
    undo(base, e, cost, stamp);
    return false;
  }

  /** False where the bucket is of another lap, or has another mark than in the stamp. */
  bool takeOut(size_t base, Word e, Word cost, Word stamp) {
    const size_t at = base + BUCKETS + ring_.slot(e);
    const Word expected = ring_.lap() | (stamp & SUNK) * ONE_REFUND;
    for (;;) {
      const Word b = load(words_, at);
      if ((b & (LAP | REFUNDS)) != expected || (b & COUNT) < cost) return false;
      if (compareExchange(words_, at, b, b - cost) == b) return true;
    }
  }

  // Marks: src/algorithms/marks.ts, which tells them. Refunds by key are TypeScript's.

  /** Charges a sunk bucket of the present lap, and brings it up where this thread is alone; LATE where it is another meanwhile. */
  Word chargeSunk(size_t base, size_t at, Word cost) {
    const size_t giving = beside(base) + GIVING;
    const bool isAlone = add(words_, giving, ONE_TURN) == 0;
    const Word b = load(words_, at);
    Word charged = LATE;
    if ((b & LAP) == ring_.lap() && refundsOf(b) == SUNK && (b & COUNT) + cost <= COUNT) {
      if (isAlone) add(words_, beside(base) + GENERATION, 1);
      const Word turned = isAlone ? b - (SUNK - 1) * ONE_REFUND : b;
      stamp_ = stampOf(base, turned);
      if (compareExchange(words_, at, b, turned + cost) == b) charged = turned + cost;
    }
    add(words_, giving, -ONE_TURN);
    return charged;
  }

  /** The stamp of a charge of bucket `b`, after which it is read. */
  Word stampOf(size_t base, Word b) const {
    const Word refunds = refundsOf(b);
    if (refunds == 0 || refunds == SUNK) return refunds;
    return (load(words_, beside(base) + GENERATION) << STAMP_BITS) | refunds;
  }

  size_t beside(size_t base) const { return shape_.besideAt + (base - shape_.waysAt) / shape_.wayWords * BESIDE_WORDS; }

  /** Something left a bucket: a sum made before is too high. A new epoch fails those under way; then the note ends. */
  void stale(size_t base) {
    for (;;) {
      const Word v = load(words_, base + ADM);
      if ((v & STATE) != LIVE) return;
      if (compareExchange(words_, base + ADM, v, v + ONE_EPOCH) == v) break;
    }
    write(words_, base + AS_OF, NO_NOTE);
  }

  /** Whether v, which has no room, is known to be so still: the key is blocked, or was summed in this very tick. */
  bool isKnownFull(size_t base, Word v, Word e, const Reading& reading) {
    // Relaxed: a note that is read late is of another epoch or time, and costs a sum.
    if (read(words_, base + AS_OF) == noteOf(v, e, sixteenthOf(e, reading))) return true;
    return isShut(base, v, reading.nowMs);
  }

  /** CAS(v -> the sum as of tick e, new epoch), then the note. */
  void resum(size_t base, Word v, Word e, const Reading& reading) {
    const uint32_t sixteenth = sixteenthOf(e, reading);
    const Word sum = ring_.sum(base, e, sixteenth);
    if (Sums::HAS_NODES && read(words_, base + TICK) != e) return;  // see fenwick.ts
    const Word next = ((v & ~COUNT) + ONE_EPOCH) | sum;
    if (compareExchange(words_, base + ADM, v, next) == v) write(words_, base + AS_OF, noteOf(next, e, sixteenth));
  }

  Word noteOf(Word v, Word e, uint32_t sixteenth) const {
    return (v & EPOCH) | NOTED | ((shape_.isSmooth ? (e * SIXTEENTHS) | sixteenth : e) & TIME);
  }

  uint32_t sixteenthOf(Word e, const Reading& reading) const {
    return shape_.isSmooth && e == reading.tick ? reading.sixteenth : 0;
  }

  bool isBlockedAt(size_t base, double nowMs) {
    const Word until = load(words_, base + UNTIL);
    charged_.until = until;
    if (until == FOR_EVER) return true;
    const double since = (nowMs - shape_.originMs) * PER_SECOND / 1000;
    const double whole = std::floor(since);
    // As a distance, in 32 bits: UNTIL wraps in 8.5 years.
    const auto left = static_cast<int32_t>(until - static_cast<Word>(static_cast<int64_t>(whole)));
    return left - (since - whole) > 0;
  }

  Word* const words_;
  const Shape& shape_;
  Ring<Sums> ring_;
  Charge charged_{};
  Word stamp_ = 0;
};

}  // namespace millrace
