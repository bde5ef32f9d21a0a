// Tests of the C++ protocol without Node, on ordinary memory and with real threads. `npm run dev -- test:native`
// builds and runs them. test/native/ tests that C++ and TypeScript agree.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "answers.h"
#include "clock.h"
#include "records.h"
#include "word_cells.h"

namespace {

template <typename Sums>
void admitsExactlyTheLimitInAnyWindow(const Shape& shape) {
  Arena<Sums> arena(shape);
  const uint32_t granules = shape.buckets;
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  // One unit in each granule, over many laps: never more than the limit in a window and a granule, and never
  // less.
  const Word limit = granules / 2;
  std::vector<int> admitted;
  int sum = 0;
  for (uint32_t tick = 0; tick < std::max(5'000u, 20 * granules); tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    admitted.push_back(admits(cells, way, 1, limit, reading) ? 1 : 0);
    sum += admitted[tick] - (tick > granules ? admitted[tick - granules - 1] : 0);
    CHECK(sum <= static_cast<int>(limit), "%d in the window that ends in granule %u", sum, tick);
    if (tick <= 2 * granules) continue;
    CHECK(sum == static_cast<int>(limit), "only %d in the window that ends in %u", sum, tick);
  }
}

template <typename Sums>
void admitsExactlyTheLimitInAnyWindow(uint32_t granules) {
  admitsExactlyTheLimitInAnyWindow<Sums>(Arena<Sums>(2, false, granules).shape);
}

/** Its cells are made for twice as many granules, and its ticks wrap on the way. */
template <typename Sums>
void aLaterRecordAdmitsExactlyTheLimitInAnyWindow(uint32_t granules) {
  const uint32_t cellBuckets = 2 * granules;
  const Shape first = shapeBy<Sums>(0, 0, cellBuckets, cellBuckets);
  const Word tick = Reading(first, START_MS).tick;
  const auto toWrap = static_cast<Word>(first.modulus - tick - 3 * granules);
  const Shape shape = shapeBy<Sums>(7, toWrap, granules, cellBuckets);
  CHECK(Reading(shape, START_MS).tick == first.modulus - 3 * granules, "it begins before the wrap");
  CHECK(Reading(shape, START_MS + 4 * granules * GRANULE_MS).tick == granules, "it ends after the wrap");
  admitsExactlyTheLimitInAnyWindow<Sums>(shape);
}

template <typename Sums>
void admitsTheWholeLimitAfterAnyNumberOfLaps(uint32_t granules) {
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  double nowMs = START_MS;
  for (int laps : {1, 2, 63, 64, 65, 255, 256, 257, 512, 1000, 1'000'000}) {
    const Reading reading(arena.shape, nowMs);
    CHECK(admits(cells, way, 7, 7, reading), "before %d laps", laps);
    CHECK(!admits(cells, way, 1, 7, reading), "full before %d laps", laps);
    nowMs += laps * (arena.shape.ring * GRANULE_MS);
  }
}

void needsANewReadingIfTheTickIsFarAhead() {
  Arena<Linear> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Linear> cells(arena.data(), arena.shape);
  const size_t base = cells.base(way);
  const Reading twoHoursLater(arena.shape, START_MS + 7'200'000);
  CHECK(cells.enter(base, twoHoursLater), "the tick moves two hours on");
  const Word before = arena.words[base + TICK];
  CHECK(!cells.enter(base, Reading(arena.shape, START_MS)), "a reading two hours back is not plausible");
  CHECK(arena.words[base + TICK] == before, "the tick stays the same");
}

/** The time in a note wraps after 2^23 granules. Nothing else changes the epoch here. */
void aNoteEndsBeforeItsTimeWraps() {
  Arena<Linear> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Linear> cells(arena.data(), arena.shape);
  const size_t base = cells.base(way);
  const auto at = [&](double granules) { return Reading(arena.shape, START_MS + granules * GRANULE_MS); };
  CHECK(admits(cells, way, 5, 5, at(0)), "the limit is admitted");
  CHECK(!admits(cells, way, 1, 5, at(0)), "full");
  CHECK(arena.words[base + AS_OF] != NO_NOTE, "a note is written");
  cells.enter(base, at(1));
  CHECK(arena.words[base + AS_OF] != NO_NOTE, "the note of an older tick stays");
  cells.enter(base, at(1 << 18));
  CHECK(arena.words[base + AS_OF] == NO_NOTE, "the note has ended");
}

template <typename Sums>
void aBatchDecidesInOrderAndStopsAtANewKey() {
  Arena<Sums> arena(100);
  std::vector<Word> fingerprints;
  for (Word i = 0; i < 500; i++) {
    const uint64_t key = i / 2;  // each key twice, and no two keys in one way
    const Word set = static_cast<Word>(((key % 100 << 32) + 99) / 100);
    const Name name{((set + 16) & ~15u) | static_cast<Word>(key / 100), i / 2 * ONE_HASH};
    if (i % 2 == 0 && i != 400) arena.insert(name, START_MS);
    fingerprints.insert(fingerprints.end(), {name.lo, name.hi});
  }
  std::vector<uint8_t> allowed(500, 9);
  std::vector<double> at(500);
  std::vector<Word> seen(500 * SEEN_WORDS);
  Batch batch{};
  batch.fingerprints = fingerprints.data();
  batch.cost = 2;
  batch.limit = 3;
  batch.to = 500;
  batch.allowed = allowed.data();
  batch.at = at.data();
  batch.seen = seen.data();
  const BatchResult none = BatchDecider<SlidingWindow<Sums>>(arena.data(), arena.shape).run(batch, START_MS);
  CHECK(none.stopped == 0 && none.admitted == 0 && !none.isBadCost,
        "the arena has another limit: stopped at %zu", none.stopped);
  arena.data()[HEADER_CURRENT] = batch.limit;
  const BatchResult tally = BatchDecider<SlidingWindow<Sums>>(arena.data(), arena.shape).run(batch, START_MS);
  CHECK(tally.stopped == 400, "stopped at %zu", tally.stopped);
  CHECK(tally.admitted == 200, "%u admitted", tally.admitted);
  for (size_t i = 0; i < 400; i++) {
    CHECK(allowed[i] == (i % 2 == 0 ? 1 : 0) && at[i] == START_MS, "entry %zu: %d", i, allowed[i]);
  }
  CHECK(allowed[400] == 9, "an undecided entry is left unchanged");
}

/**
 * All threads decide on one way, and count what each time of the clock admits. If a thread sees the same time
 * before and after a decision, the admission was charged in that tick. A thread advances the clock by
 * `turnMs` where `shouldAdvance(now, isFull)` says so; in calm times, only once the way is full.
 */
template <typename Sums, typename ShouldAdvance>
void admitInTurns(Arena<Sums>& arena, size_t way, Word cost, Word limit, double turnMs,
                  std::vector<std::atomic<Word>>& admitted, ShouldAdvance shouldAdvance) {
  const int phases = static_cast<int>(admitted.size());
  Clock clock;
  inThreads([&](unsigned i) {
    Cells<Sums> cells(arena.data(), arena.shape);
    for (int now = clock.enter(i); now < phases; now = clock.enter(i)) {
      const Reading reading(arena.shape, START_MS + now * turnMs);
      const auto decideOne = [&] {
        const Result found = decide(cells, way, cost, limit, reading);
        if (found == Result::ADMITTED && clock.now() == now) admitted[now] += cost;
        return found;
      };
      // NEEDS_READING: this thread was suspended while the others advanced the clock by an hour.
      const bool isFull = decideOne() == Result::FULL;
      if (!Clock::isCalm(now)) {
        if (shouldAdvance(now, isFull)) clock.advance(now);
      } else if (isFull) {
        clock.advanceCalmly(now, [&] {
          while (decideOne() != Result::FULL) continue;
        });
      }
    }
    clock.leave(i);
  });
}

/** A refused thread advances the clock by a window and a granule. */
template <typename Sums>
void threadsNeverExceedTheLimit(bool isSmooth, uint32_t granules, Word cost) {
  constexpr Word limit = 20;
  constexpr int PHASES = 50'000 / ONE_IN;
  Arena<Sums> arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  const double turnMs = (granules + 1) * GRANULE_MS;
  std::vector<std::atomic<Word>> admitted(PHASES);
  admitInTurns(arena, way, cost, limit, turnMs, admitted, [](int, bool isFull) { return isFull; });
  for (int i = 0; i < PHASES; i++) {
    CHECK(admitted[i] <= limit, "%u in window %d", admitted[i].load(), i);
    if (!Clock::isRecorded(i, 0)) continue;
    CHECK(admitted[i] == limit / cost * cost, "only %u in window %d", admitted[i].load(), i);
  }
}

/**
 * As above, but the clock advances by a part of a window, and also while there is room. So windows end
 * anywhere in the ring and hold admissions of many times.
 */
template <typename Sums>
void threadsNeverExceedTheLimitInMovingWindows(uint32_t granules) {
  constexpr Word limit = 10;
  constexpr int PHASES = 20'000 / ONE_IN;
  const uint32_t turn = (granules + 6) / 7;
  const int phasesAWindow = static_cast<int>((granules + turn - 1) / turn);
  const int before = static_cast<int>(granules / turn);  // times of which the limiter still counts a granule
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  std::vector<std::atomic<Word>> admitted(PHASES);
  admitInTurns(arena, way, 1, limit, turn * GRANULE_MS, admitted,
               [&](int now, bool isFull) { return isFull || admitted[now] > limit / 4; });
  for (int end = phasesAWindow; end < PHASES; end++) {
    Word sum = 0;
    for (int i = end - phasesAWindow + 1; i <= end; i++) sum += admitted[i];
    CHECK(sum <= limit, "%u in the window that ends at turn %d", sum, end);
    if (!Clock::isRecorded(end, before)) continue;
    if (before == phasesAWindow) sum += admitted[end - before];
    CHECK(sum == limit, "only %u in the window that ends at turn %d", sum, end);
  }
}

template <typename Sums>
void theLastCellStaysWithinTheArena() {
  Arena<Sums> arena(2);
  constexpr Name last{0xffffffff, HASH};
  const size_t way = arena.insert(last, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  CHECK(cells.base(way) + arena.shape.wayWords == arena.shape.extraAt, "way %zu is the last", way);
  for (uint32_t tick = 0; tick < 3 * (GRANULES + 1); tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    const bool isFirst = tick % (GRANULES + 1) == 0;
    CHECK(admits(cells, way, 5, 5, reading, last) == isFirst, "in granule %u", tick);
  }
}

/**
 * Any thread advances the clock by a granule at any time, on a ring of four buckets. So decisions meet
 * rollovers, undo charges of a granule that ended, and sum all the time. An admission was charged between the
 * granules before and after the decision, so it counts in every window that holds both.
 */
template <typename Sums>
void threadsNeverExceedTheLimitWhileTheClockAdvances(bool isSmooth) {
  constexpr uint32_t granules = 3;
  constexpr Word limit = 12;
  constexpr int TICKS = 300'000 / ONE_IN;
  constexpr unsigned DECISIONS_A_TURN = 8;
  constexpr unsigned READINGS_KEPT = 61;
  Arena<Sums> arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Clock clock;
  std::vector<std::array<std::atomic<Word>, granules + 1>> admitted(TICKS);
  std::atomic<Word> late{0};
  inThreads([&](unsigned i) {
    Cells<Sums> cells(arena.data(), arena.shape);
    unsigned decisions = i;
    for (int from = clock.enter(i); from < TICKS; from = clock.enter(i)) {
      const Word cost = 1 + decisions % 3;
      const Reading reading(arena.shape, START_MS + from * GRANULE_MS);
      const bool isCalm = Clock::isCalm(from);
      // So the reading is late when it is used.
      if (decisions % READINGS_KEPT == 0 && !isCalm) clock.advance(from);
      const Result found = decide(cells, way, cost, limit, reading);
      const int to = clock.now();
      if (found == Result::ADMITTED && to - from <= static_cast<int>(granules)) {
        admitted[from][to - from] += cost;
        if (to > from) late++;
      }
      if (++decisions % DECISIONS_A_TURN != 0) continue;
      if (!isCalm) {
        if (!Clock::isCalm(to)) clock.advance(to);
        continue;
      }
      clock.advanceCalmly(from, [&] {
        while (decide(cells, way, 1, limit, reading) == Result::ADMITTED) admitted[from][0]++;
      });
    }
    clock.leave(i);
  });
  // The oldest granule of a smooth window counts in part, so only the whole granules are checked.
  const int window = isSmooth ? granules : granules + 1;
  for (int first = 0; first + window <= TICKS; first++) {
    Word inside = 0;
    for (int from = first; from < first + window; from++) {
      for (int to = from; to < first + window; to++) inside += admitted[from][to - from];
    }
    CHECK(inside <= limit, "%u in the window of granules %d to %d", inside, first, first + window - 1);
  }
  for (int end = 0; end < TICKS; end++) {
    if (!Clock::isRecorded(end, granules)) continue;
    Word inside = 0;
    for (int from = end - static_cast<int>(granules); from <= end; from++) inside += admitted[from][0];
    CHECK(inside >= limit, "only %u up to granule %d", inside, end);
  }
  CHECK(late > 0, "no reading was late");
}

void aShapeHasTheSizesOfTypeScript() {
  struct Expected {
    Word sums;
    uint32_t buckets, ring, blocks, upper;
  };
  for (const auto& [sums, buckets, ring, blocks, upper] : {
           Expected{SUMS_LINEAR, 60, 61, 0, 0},
           Expected{SUMS_BLOCKS, 1, 128, 2, 0},
           Expected{SUMS_BLOCKS, 63, 128, 2, 0},
           Expected{SUMS_BLOCKS, 64, 192, 3, 0},
           Expected{SUMS_BLOCKS, 4'096, 4'224, 66, 0},
           Expected{SUMS_BLOCKS, 4'097, 12'288, 192, 3},
           Expected{SUMS_FENWICK, 4'097, 4'224, 66, 0},
           Expected{SUMS_BLOCKS, 1 << 20, 1'056'768, 16'512, 258},
           Expected{SUMS_FENWICK, 1 << 20, 1'048'704, 16'386, 0},
       }) {
    const Shape shape(1000.0 * buckets, buckets, 2, 0, false, sums);
    const bool isSame = shape.ring == ring && shape.blocks == blocks && shape.upper == upper;
    CHECK(isSame, "%u buckets by %u: %u, %u, %u", buckets, sums, shape.ring, shape.blocks, shape.upper);
    CHECK(shape.modulus % (int64_t{LAPS} * ring) == 0, "%u buckets by %u: laps end at the modulus", buckets,
          sums);
  }
}

template <typename Sums>
void addTestsOfNodes(Tests& tests, const std::string& name) {
  const auto add = [&](const std::string& what, std::function<void()> run) {
    tests.emplace_back(name + what, run);
  };
  for (const uint32_t granules : {GRANULES, 300u, MANY_GRANULES}) {
    const std::string many = " of " + std::to_string(granules);
    add(many + ": admits exactly the limit in any window",
        [=] { admitsExactlyTheLimitInAnyWindow<Sums>(granules); });
    add(many + ": admits the whole limit after any number of laps",
        [=] { admitsTheWholeLimitAfterAnyNumberOfLaps<Sums>(granules); });
    add(many + ": a later record admits exactly the limit in any window",
        [=] { aLaterRecordAdmitsExactlyTheLimitInAnyWindow<Sums>(granules); });
    add(many + ": nodes count the sum of their buckets",
        [=] { nodesCountTheSumOfTheirBuckets<Sums>(granules); });
    add(many + ": threads never exceed the limit",
        [=] { threadsNeverExceedTheLimit<Sums>(false, granules, 3); });
    add(many + ": threads never exceed the limit in moving windows",
        [=] { threadsNeverExceedTheLimitInMovingWindows<Sums>(granules); });
  }
  add(": waits for units that only a node counts", waitsForUnitsThatOnlyANodeCounts<Sums>);
  add(": takes an uncommitted charge out of every node", takesAnUncommittedChargeOutOfEveryNode<Sums>);
  for (const uint32_t laps : {1, 2, 100}) {
    add(": a charge " + std::to_string(laps) + " laps late does not change nodes of a later lap",
        [=] { aLateChargeDoesNotChangeNodesOfALaterLap<Sums>(laps); });
  }
  add(": threads never exceed the limit while the clock advances",
      [] { threadsNeverExceedTheLimitWhileTheClockAdvances<Sums>(false); });
  add(": threads never exceed the limit while the clock advances, smooth",
      [] { threadsNeverExceedTheLimitWhileTheClockAdvances<Sums>(true); });
  add(": the last cell stays within the arena", theLastCellStaysWithinTheArena<Sums>);
  add(": a cell of another record is left as it is", aCellOfAnotherRecordIsLeftAsItIs<Sums>);
  add(": the tick of a later record stays", theTickOfALaterRecordStays<Sums>);
  add(": a batch decides in order and stops at a new key", aBatchDecidesInOrderAndStopsAtANewKey<Sums>);
}

}  // namespace

int main() {
  Tests tests{
      {"a shape has the sizes that TypeScript computes", aShapeHasTheSizesOfTypeScript},
      {"admits exactly the limit in any window",
       [] { admitsExactlyTheLimitInAnyWindow<Linear>(GRANULES); }},
      {"admits the whole limit after any number of laps",
       [] { admitsTheWholeLimitAfterAnyNumberOfLaps<Linear>(GRANULES); }},
      {"needs a new reading if the tick is far ahead", needsANewReadingIfTheTickIsFarAhead},
      {"answers retryAfter only while the cell is unchanged", answersRetryAfterOnlyWhileTheCellIsUnchanged},
      {"sums the figures of a decision", sumsTheFiguresOfADecision},
      {"sums the figures of a refusal", sumsTheFiguresOfARefusal},
      {"a tick has the shift of its record, and wraps", aTickHasTheShiftOfItsRecordAndWraps},
      {"a batch stops as soon as another record holds", aBatchStopsAsSoonAsAnotherRecordHolds},
      {"the request server stops as soon as another record holds", theServerStopsAsSoonAsAnotherRecordHolds},
      {"a key is absent only while the first record holds", aKeyIsAbsentOnlyWhileTheFirstRecordHolds},
      {"usage is left if the cell is converted meanwhile", usageIsLeftIfTheCellIsConvertedMeanwhile},
      {"takes a charge out unless a refund by key may have taken it",
       takesAChargeOutUnlessARefundByKeyMayHaveTakenIt},
      {"a note ends before its time wraps", aNoteEndsBeforeItsTimeWraps},
      {"a batch decides in order and stops at a new key", aBatchDecidesInOrderAndStopsAtANewKey<Linear>},
      {"threads never exceed the limit, cost 1",
       [] { threadsNeverExceedTheLimit<Linear>(false, GRANULES, 1); }},
      {"threads never exceed the limit, cost 3",
       [] { threadsNeverExceedTheLimit<Linear>(false, GRANULES, 3); }},
      {"threads never exceed the limit in a window of one granule",
       [] { threadsNeverExceedTheLimit<Linear>(false, 1, 1); }},
      {"threads never exceed the limit, smooth",
       [] { threadsNeverExceedTheLimit<Linear>(true, GRANULES, 1); }},
      {"threads never exceed the limit in moving windows",
       [] { threadsNeverExceedTheLimitInMovingWindows<Linear>(GRANULES); }},
      {"the last cell stays within the arena", theLastCellStaysWithinTheArena<Linear>},
      {"a later record admits exactly the limit in any window",
       [] { aLaterRecordAdmitsExactlyTheLimitInAnyWindow<Linear>(GRANULES); }},
      {"a cell of another record is left as it is", aCellOfAnotherRecordIsLeftAsItIs<Linear>},
      {"the tick of a later record stays", theTickOfALaterRecordStays<Linear>},
      {"threads never exceed the limit while the clock advances",
       [] { threadsNeverExceedTheLimitWhileTheClockAdvances<Linear>(false); }},
      {"threads never exceed the limit while the clock advances, smooth",
       [] { threadsNeverExceedTheLimitWhileTheClockAdvances<Linear>(true); }},
  };
  tests.emplace_back("a Fenwick tree: rejects a sum that the next lap overtakes",
                     rejectsASumThatTheNextLapOvertakes);
  addTestsOfNodes<Blocks>(tests, "block sums");
  addTestsOfNodes<Fenwick>(tests, "a Fenwick tree");
  addTestsOfWords(tests);
  int broken = 0;
  for (const auto& [name, run] : tests) {
    const int before = failed;
    run();
    if (failed > before) broken++;
    std::printf("%s %s\n", failed > before ? "FAIL" : "ok  ", name.c_str());
    std::fflush(stdout);
  }
  std::printf("%zu passed, %d failed\n", tests.size() - static_cast<size_t>(broken), broken);
  return broken > 0 ? 1 : 0;
}
