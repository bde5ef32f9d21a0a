// The part of the protocol that does not depend on how a cell counts its units: in buckets (cell.h), or each for
// itself (log_cells.h). The counterpart of src/algorithms/window/summed-cells.ts.
#pragma once

#include "keyed_cells.h"
#include "range_sum.h"

namespace millrace {

/** A sum of what a cell has counted. */
struct Sum {
  Word units;
  /** How long it holds, as the bits of a note. */
  Word noteTime;
  /** The cell's tick has moved on, and the sum is void. */
  bool isVoid = false;
};

/**
 * `Own` is the class that extends this one. It has:
 *
 *     NOTE_STEP_BITS                        a note tells ticks apart that are less than 2 to this power away
 *     Move move(base, tick, reading)        moves the tick of a cell to the reading's
 *     Word charge(base, e, cost, reading)   charges units in tick e. Returns LATE, OVERFLOWN, or another word
 *     Word stamp()                          the stamp of the last charge
 *     bool undo(base, e, cost, stamp)       takes the last charge out. Returns whether it did
 *     Sum sum(base, e, reading)             the units in the window that ends in tick e
 *     bool holds(note, e, reading)          whether a note of the cell's present epoch holds in tick e
 */
template <typename Own>
class SummedCells : public KeyedCells {
 public:
  /** What giving back the last admission needs to know: a receipt (src/algorithms/algorithm.ts). */
  Word receipt() const { return decided_.stamp; }

  /** What an admission word says that its key has used at most: units. */
  static Word mostIn(Word v, Word) { return v & COUNT; }

  /** Whether an admission word says blocked. */
  static bool isShut(Word v) { return (v & COUNT) == BLOCKED; }

  /** Whether the admission word `v` says blocked and the block has not ended. */
  bool isBlocked(size_t base, Word v, double nowMs) { return isShut(v) && isBefore(nowMs, untilOf(base)); }

  /** Moves a cell's tick forward to the reading's. Returns false if that needs a newer reading. */
  bool enter(size_t base, const Reading& reading) {
    const Word tick = read(words_, base + TICK);  // relaxed: a stale tick makes the compare-exchange fail
    if (tick == reading.tick) return true;
    const auto [moved, isFarAhead] = own().move(base, tick, reading);
    const bool passed = moved >= int64_t{1} << Own::NOTE_STEP_BITS;
    if (passed || (moved > 0 && tick >> Own::NOTE_STEP_BITS != reading.tick >> Own::NOTE_STEP_BITS)) bumpEpoch(base);
    return !isFarAhead;
  }

  /**
   * Admits `cost` units (1 to `limit`). Returns FULL if they do not fit, or GONE if the way is not the key's.
   */
  Result decide(size_t way, Name name, Word cost, Word limit, const Reading& reading) {
    const size_t base = this->base(way);
    bool hasOverflown = false;
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word v = load(words_, base + ADM);
      if (!isOf(v, way, name)) return Result::GONE;
      const Word e = read(words_, base + TICK);
      if ((v & COUNT) + cost > limit) {
        if (isKnownFull(base, v, e, reading)) return full(v, e);
        resum(base, v, e, reading);
        continue;  // v has changed, by this sum or by another thread's
      }
      const Word charged = own().charge(base, e, cost, reading);
      if (charged == LATE) continue;
      if (charged == OVERFLOWN) {
        if (hasOverflown) return full(v, e);
        hasOverflown = true;
        resum(base, v, e, reading);
        continue;
      }
      if (commit(way, name, cost, limit, e, v, own().stamp())) return Result::ADMITTED;
    }
    return Result::NEEDS_READING;  // damaged memory: TypeScript refuses
  }

 protected:
  using KeyedCells::KeyedCells;

  /** Adds a charge of tick e to the admission word. Returns false if it had to take the charge out again. */
  bool commit(size_t way, Name name, Word cost, Word limit, Word e, Word v, Word stamp) {
    const size_t base = this->base(way);
    decided_ = {e, stamp, v + cost, 0};
    Word x = compareExchange(words_, base + ADM, v, v + cost);
    if (x == v) return true;
    for (Word tries = 0; tries < MOST_TRIES && isOf(x, way, name); tries++) {
      if (read(words_, base + TICK) != e || (x & COUNT) + cost > limit) break;
      decided_.adm = x + ONE_EPOCH + cost;
      const Word found = compareExchange(words_, base + ADM, x, decided_.adm);
      if (found == x) return true;
      x = found;
    }
    own().undo(base, e, cost, stamp);
    return false;
  }

  /**
   * Called after a count has been taken out, because sums made before are too high. The new epoch makes the
   * sums in progress fail. Then the note ends.
   */
  void bumpEpoch(size_t base) {
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word v = load(words_, base + ADM);
      if ((v & STATE) != LIVE) return;
      if (compareExchange(words_, base + ADM, v, v + ONE_EPOCH) == v) break;
    }
    write(words_, base + AS_OF, NO_NOTE);
  }

  /** Whether `v`, which has no room, is up to date: the key is blocked, or the last sum still holds. */
  bool isKnownFull(size_t base, Word v, Word e, const Reading& reading) {
    // Relaxed: a stale note is of another epoch or time, and costs one sum.
    const Word note = read(words_, base + AS_OF);
    if (((note ^ v) & EPOCH) == 0 && (note & NOTED) != 0 && own().holds(note, e, reading)) return true;
    return isBlocked(base, v, reading.nowMs);
  }

  /** Replaces the total of `v` by the sum as of tick e, with a new epoch, and writes the note. */
  void resum(size_t base, Word v, Word e, const Reading& reading) {
    const Sum sum = own().sum(base, e, reading);
    if (sum.isVoid) return;
    const Word next = ((v & ~COUNT) + ONE_EPOCH) | sum.units;
    if (compareExchange(words_, base + ADM, v, next) != v) return;
    write(words_, base + AS_OF, (next & EPOCH) | NOTED | sum.noteTime);
  }

 private:
  Own& own() { return static_cast<Own&>(*this); }
};

}  // namespace millrace
