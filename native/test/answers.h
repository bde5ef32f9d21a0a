// Tests of the waiting time after a refusal, and of charges that a refund by key may have taken.
// interrupted.h comes before single.h, because the faults of seeds.h must precede the headers that they
// change.
#pragma once

#include <array>

#include "interrupted.h"

#include "../single.h"

namespace {

/** Whole milliseconds from `fromMs` until `cost` is admitted. Tries each granule on a copy of the arena. */
template <typename Sums>
double untilAdmittedByTrying(const Arena<Sums>& arena, size_t way, Word cost, Word limit, double fromMs) {
  for (uint32_t granule = 0; granule <= arena.shape.buckets + 1; granule++) {
    Arena<Sums> copy = arena;
    Cells<Sums> cells(copy.words.data(), copy.shape);
    const double position = std::floor(copy.shape.position(fromMs)) + granule;
    const double ms = granule == 0 ? 0 : copy.shape.untilPosition(fromMs, position);
    if (admits(cells, way, cost, limit, Reading(copy.shape, fromMs + ms))) return ms;
  }
  return -1;
}

/**
 * A thread died after it charged a node and before it charged the bucket. Sums include these units until the
 * node's first bucket has left the window.
 */
template <typename Sums>
void waitsForUnitsThatOnlyANodeCounts() {
  constexpr uint32_t granules = 300;
  for (const uint32_t slot : {130u, 200u, 250u}) {
    Arena<Sums> arena(2, false, granules);
    const double thenMs = inSlot(arena.shape, 70);
    const size_t way = arena.insert(KEY, thenMs);
    Cells<Sums> cells(arena.words.data(), arena.shape);
    const Reading then(arena.shape, thenMs);
    const uint32_t charged = cells.ring().slot(then.tick);
    const Word lap = cells.ring().lap();
    const Word above = cells.ring().sums().charge(cells.base(way), then.tick, charged, lap, 3);
    CHECK(above == CHARGED, "the nodes are charged");
    const Reading now(arena.shape, thenMs + (slot - 70) * GRANULE_MS);
    CHECK(cells.enter(cells.base(way), now), "the tick moves on");
    CHECK(admits(cells, way, 2, 5, now), "the rest of the limit fits");
    CHECK(!admits(cells, way, 4, 5, now), "four do not fit, so the cell is summed");
    CHECK(!admits(cells, way, 1, 5, now), "full");
    Estimates<Sums> estimates(arena.words.data(), arena.shape, cells);
    for (const Word cost : {1u, 3u, 4u, 5u}) {
      const double ms = estimates.untilFits(cells.base(way), cost, 5, now);
      const double tried = untilAdmittedByTrying(arena, way, cost, 5, now.nowMs);
      CHECK(ms == tried, "cost %u at slot %u: %f ms, expected %f ms", cost, slot, ms, tried);
    }
  }
}

/** A changed cell is left to TypeScript. */
void answersRetryAfterOnlyWhileTheCellIsUnchanged() {
  Arena<Linear> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  std::array<double, CALL_WORDS / 2> memory{};
  Call call(reinterpret_cast<Word*>(memory.data()));
  SingleBy<SlidingWindow<Linear>> single(arena.words.data(), arena.shape);
  const auto run = [&](Word what, Word cost) {
    call.put(CALL_OPERATION, what);
    call.put(CALL_LO, KEY.lo);
    call.put(CALL_HI, KEY.hi);
    call.put(CALL_COST, cost);
    call.put(CALL_LIMIT, Word{5});
    call.put(CALL_WAY, static_cast<Word>(way));
    call.put(CALL_NOW_MS, START_MS);
    call.put(CALL_MS, START_MS);
    single.run(call);
    return call.word(CALL_STATUS);
  };
  arena.words[HEADER_CURRENT] = 5;
  CHECK(run(OPERATION_CHECK, 5) == (STATUS_DONE | STATUS_SUSPECT), "the limit is admitted");
  CHECK(run(OPERATION_CHECK, 1) == STATUS_REFUSED, "full");
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_DONE, "answered");
  CHECK(call.number(CALL_ANSWER) > WINDOW_MS - GRANULE_MS, "the wait is a window");
  const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
  arena.words[base + ADM] += ONE_EPOCH;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another admission word");
  arena.words[base + ADM] -= ONE_EPOCH;
  arena.words[base + TICK] += 1;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another tick");
  arena.words[base + TICK] -= 1;
  arena.words[base + HI] += ONE_HASH;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another key");
  arena.words[base + HI] -= ONE_HASH;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_DONE, "the cell is restored");
}

/** The figures are as of the decision, or bounds if another thread changes the cell before the sum. */
void sumsTheFiguresOfADecision() {
  for (const bool isInterrupted : {false, true}) {
    Arena<Linear> arena(2);
    const size_t way = arena.insert(KEY, START_MS);
    Cells<Interrupted<Linear>> cells(arena.words.data(), arena.shape);
    Estimates<Interrupted<Linear>> estimates(arena.words.data(), arena.shape, cells);
    CHECK(admits(cells, way, 4, 10, Reading(arena.shape, START_MS)), "the first four");
    const Reading later(arena.shape, START_MS + WINDOW_MS + 2 * GRANULE_MS);
    CHECK(admits(cells, way, 2, 10, later), "two more, after the four have left the window");
    Cells<Linear> other(arena.words.data(), arena.shape);
    const auto takeOut = [&] { CHECK(other.undo(cells.base(way), later.tick, 2, 0), "taken out"); };
    if (isInterrupted) cells.ring().sums().beforeSum = takeOut;
    const Figures admitted = estimates.figures(way, true, 2, 10, later);
    CHECK(admitted.remaining == (isInterrupted ? 4 : 8), "%u are left", admitted.remaining);
    CHECK(admitted.retryAfterMs == 0, "an admission waits for nothing");
    CHECK(admitted.resetMs == estimates.untilGone(cells.decided(), later), "its own charge leaves last");
  }
}

void sumsTheFiguresOfARefusal() {
  for (const bool isInterrupted : {false, true}) {
    Arena<Linear> arena(2);
    const size_t way = arena.insert(KEY, START_MS);
    Cells<Interrupted<Linear>> cells(arena.words.data(), arena.shape);
    Estimates<Interrupted<Linear>> estimates(arena.words.data(), arena.shape, cells);
    const Reading first(arena.shape, START_MS);
    const Reading second(arena.shape, START_MS + GRANULE_MS);
    CHECK(admits(cells, way, 4, 5, first), "the first four");
    CHECK(cells.enter(cells.base(way), second), "the tick moves on");
    CHECK(admits(cells, way, 1, 5, second), "the fifth");
    CHECK(!admits(cells, way, 1, 5, second), "full");
    Cells<Linear> other(arena.words.data(), arena.shape);
    const auto takeOut = [&] { CHECK(other.undo(cells.base(way), first.tick, 4, 0), "taken out"); };
    if (isInterrupted) cells.ring().sums().beforeSum = takeOut;
    const Figures refused = estimates.figures(way, false, 1, 5, second);
    const double goneMs = estimates.untilGone({second.tick, 0, 0, 0}, second);
    CHECK(refused.remaining == 0, "%u are left", refused.remaining);
    const double expected = isInterrupted ? goneMs : goneMs - GRANULE_MS;
    CHECK(refused.retryAfterMs == expected, "%f ms, expected %f", refused.retryAfterMs, expected);
    CHECK(refused.resetMs == goneMs, "the fifth leaves last: %f ms", refused.resetMs);
  }
}

/** The refund words before a charge and when it is taken out, and whether it can be taken out. */
struct Marked {
  const char* what;
  /** Before the charge: the bucket's mark, the cell's generation and its GIVING. */
  Word mark, generation, giving;
  /** When the charge is taken out. */
  Word markThen, generationThen;
  bool isTakenOut;
  Word stamp;
};

void takesAChargeOutUnlessARefundByKeyMayHaveTakenIt() {
  for (const auto& [what, mark, generation, giving, markThen, generationThen, isTakenOut, stamp] : {
           Marked{"no refund", 0, 0, 0, 0, 0, true, 0},
           Marked{"no refund, but a new generation", 0, 7, 0, 0, 8, true, 0},
           Marked{"one refund before", 1, 7, 0, 1, 7, true, 7 << 2 | 1},
           Marked{"two refunds before", 2, 7, 0, 2, 7, true, 7 << 2 | 2},
           Marked{"one refund before and one after", 1, 7, 0, 2, 7, false, 7 << 2 | 1},
           Marked{"refunds after that start a new generation", 1, 7, 0, 1, 8, false, 7 << 2 | 1},
           Marked{"the first refund after", 0, 7, 0, 1, 7, false, 0},
           Marked{"sunk, and turned by the charge", SUNK, 7, 0, 1, 8, true, 8 << 2 | 1},
           Marked{"a turn in progress", 1, 7, ONE_TURN, 1, 7, false, 7 << 2 | 1},
           Marked{"sunk, and another thread gives back", SUNK, 7, 1, SUNK, 7, false, SUNK},
           Marked{"sunk, in the first generation", SUNK, 0, 1, SUNK, 0, false, SUNK},
       }) {
    Arena<Blocks> arena(2, false, 300);
    const size_t way = arena.insert(KEY, START_MS);
    Cells<Blocks> cells(arena.words.data(), arena.shape);
    Cells<Blocks> other(arena.words.data(), arena.shape);
    const Reading reading(arena.shape, START_MS);
    const size_t base = cells.base(way);
    Word& bucket = arena.words[base + BUCKETS + cells.ring().slot(reading.tick)];
    Word* const extra = arena.words.data() + arena.shape.extraAt + way * EXTRA_WORDS;
    CHECK(admits(other, way, 1, 5, reading), "%s", what);
    bucket += mark * ONE_REFUND;
    extra[GENERATION] = generation;
    extra[GIVING] = giving;
    CHECK(admits(cells, way, 1, 5, reading), "%s", what);
    CHECK(cells.decided().stamp == stamp, "%s: stamp %u", what, cells.decided().stamp);
    bucket = (bucket & ~REFUNDS) + markThen * ONE_REFUND;
    extra[GENERATION] = generationThen;
    CHECK(cells.undo(base, reading.tick, 1, stamp) == isTakenOut, "%s", what);
    CHECK((bucket & COUNT) == (isTakenOut ? 1u : 2u), "%s: %u", what, bucket & COUNT);
    CHECK(extra[GIVING] == giving, "%s: %u give back", what, extra[GIVING]);
  }
}

}  // namespace
