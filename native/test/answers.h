// What single decisions are told of: how long to wait. And a charge that stays, as a refund by key may have taken it.
#pragma once

#include <array>

#include "../single.h"
#include "interrupted.h"

namespace {

/** Whole milliseconds from `fromMs` until `cost` is admitted, by trying each granule on a copy of the arena. */
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

/** A thread died between a node and its bucket: sums count what no bucket does, until the node's first bucket is out. */
template <typename Sums>
void whatANodeCountsBeyondItsBucketsIsWaitedFor() {
  constexpr uint32_t granules = 300;
  for (const uint32_t slot : {130u, 200u, 250u}) {
    Arena<Sums> arena(2, false, granules);
    const double thenMs = inSlot(arena.shape, 70);
    const size_t way = arena.insert(KEY, thenMs);
    Cells<Sums> cells(arena.words.data(), arena.shape);
    const Reading then(arena.shape, thenMs);
    const uint32_t charged = cells.ring().slot(then.tick);
    CHECK(cells.ring().sums().charge(cells.base(way), then.tick, charged, cells.ring().lap(), 3) == CHARGED, "nodes alone");
    const Reading now(arena.shape, thenMs + (slot - 70) * GRANULE_MS);
    CHECK(cells.enter(cells.base(way), now), "later");
    CHECK(admits(cells, way, 2, 5, now), "the rest");
    CHECK(!admits(cells, way, 4, 5, now), "no room for four, and so all is summed");
    CHECK(!admits(cells, way, 1, 5, now), "full");
    Forecast<Sums> forecast(arena.words.data(), arena.shape, cells);
    for (const Word cost : {1u, 3u, 4u, 5u}) {
      const double ms = forecast.untilFits(cells.base(way), cost, 5, now);
      const double tried = untilAdmittedByTrying(arena, way, cost, 5, now.nowMs);
      CHECK(ms == tried, "cost %u at slot %u: %f, by trying %f", cost, slot, ms, tried);
    }
  }
}

/** A refusal waits until a window has passed; a cell that has changed since is left to TypeScript. */
void aRefusalIsAnsweredWhileItsCellIsUnchanged() {
  Arena<Plain> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  std::array<double, CALL_WORDS / 2> memory{};
  Call call(reinterpret_cast<Word*>(memory.data()));
  SingleBy<Plain> single(arena.words.data(), arena.shape);
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
  arena.words[HEADER_LIMIT] = 5;
  CHECK(run(OPERATION_CHECK, 5) == STATUS_DONE, "the limit");
  CHECK(run(OPERATION_CHECK, 1) == STATUS_REFUSED, "full");
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_DONE && call.number(CALL_ANSWER) > WINDOW_MS - GRANULE_MS, "a window");
  const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
  arena.words[base + ADM] += ONE_EPOCH;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another word");
  arena.words[base + ADM] -= ONE_EPOCH;
  arena.words[base + TICK] += 1;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another tick");
  arena.words[base + TICK] -= 1;
  arena.words[base + HI] += 1;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_UNANSWERED, "another key");
  arena.words[base + HI] -= 1;
  CHECK(run(OPERATION_RETRY_AFTER, 1) == STATUS_DONE, "as it was");
}

/** What refunds by key leave beside a charge, and whether the charge can be taken out then. */
struct Marked {
  const char* what;
  /** The bucket's mark before the charge, the cell's generation, and how many threads give back. */
  Word mark, generation, giving;
  /** The same when the charge comes to be taken out. */
  Word markThen, generationThen;
  bool isTakenOut;
  Word stamp;
};

void aChargeIsTakenOutUnlessARefundByKeyHasBeenThere() {
  for (const auto& [what, mark, generation, giving, markThen, generationThen, isTakenOut, stamp] : {
           Marked{"no refund", 0, 0, 0, 0, 0, true, 0},
           Marked{"no refund, though others have begun anew", 0, 7, 0, 0, 8, true, 0},
           Marked{"a refund before", 1, 7, 0, 1, 7, true, 7 << 2 | 1},
           Marked{"two before", 2, 7, 0, 2, 7, true, 7 << 2 | 2},
           Marked{"one before, one meanwhile", 1, 7, 0, 2, 7, false, 7 << 2 | 1},
           Marked{"as many meanwhile as begin anew", 1, 7, 0, 1, 8, false, 7 << 2 | 1},
           Marked{"the first meanwhile", 0, 7, 0, 1, 7, false, 0},
           Marked{"sunk, and comes up", SUNK, 7, 0, 1, 8, true, 8 << 2 | 1},
           Marked{"a turn under way", 1, 7, ONE_TURN, 1, 7, false, 7 << 2 | 1},
           Marked{"sunk, and can’t come up", SUNK, 7, 1, SUNK, 7, false, SUNK},
           Marked{"sunk, in the first generation", SUNK, 0, 1, SUNK, 0, false, SUNK},
       }) {
    Arena<Blocks> arena(2, false, 300);
    const size_t way = arena.insert(KEY, START_MS);
    Cells<Blocks> cells(arena.words.data(), arena.shape);
    Cells<Blocks> other(arena.words.data(), arena.shape);
    const Reading reading(arena.shape, START_MS);
    const size_t base = cells.base(way);
    Word& bucket = arena.words[base + BUCKETS + cells.ring().slot(reading.tick)];
    Word* const beside = arena.words.data() + arena.shape.besideAt + way * BESIDE_WORDS;
    CHECK(admits(other, way, 1, 5, reading), "%s", what);
    bucket += mark * ONE_REFUND;
    beside[GENERATION] = generation;
    beside[GIVING] = giving;
    CHECK(admits(cells, way, 1, 5, reading), "%s", what);
    CHECK(cells.charged().refunds == stamp, "%s: stamp %u", what, cells.charged().refunds);
    bucket = (bucket & ~REFUNDS) + markThen * ONE_REFUND;
    beside[GENERATION] = generationThen;
    CHECK(cells.undo(base, reading.tick, 1, stamp) == isTakenOut, "%s", what);
    CHECK((bucket & COUNT) == (isTakenOut ? 1u : 2u), "%s: %u", what, bucket & COUNT);
    CHECK(beside[GIVING] == giving, "%s: %u give back", what, beside[GIVING]);
  }
}

}  // namespace
