// Tests of the cells without buckets: native/word_cells.h and native/log_cells.h.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clock.h"
#include "support.h"

namespace {

/** The limit of a fixed window, and the burst of a token bucket: the tokens of BUCKET_GRANULES granules. */
constexpr Word WORD_LIMIT = 16;
constexpr uint32_t BUCKET_GRANULES = 4;
constexpr uint32_t UNITS = 1 << 10;
/** The start of the granule of START_MS. */
constexpr double FIRST_MS = 1'000'000;
constexpr Word TOKENS_A_GRANULE = WORD_LIMIT / BUCKET_GRANULES;

template <typename Meter>
constexpr bool IS_BUCKET = std::is_same_v<Meter, TokenBucket>;

template <typename Meter>
Shape wordShape(double granuleMs = GRANULE_MS) {
  constexpr bool isBucket = IS_BUCKET<Meter>;
  constexpr uint32_t granules = isBucket ? BUCKET_GRANULES : 1;
  const CellRule rule{isBucket ? COUNTING_TOKEN_BUCKET : COUNTING_FIXED_WINDOW, isBucket ? UNITS : 0, 0};
  return Shape(granules * granuleMs, granules, 2, START_MS, false, SUMS_LINEAR, granules, 0, 0, rule);
}

template <typename Meter>
size_t insertWord(Arena<Linear>& arena) {
  const size_t way = arena.insert(KEY, START_MS);
  const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
  const Word tick = Reading(arena.shape, START_MS).tick;
  arena.data()[base + TICK] = settled(tick);
  arena.data()[base + ADM] = LIVE | Meter(arena.shape).emptyAt(tick);
  return way;
}

/** Units admitted in each tick after the first, by the cell's tick at each admission. */
using Counts = std::vector<std::atomic<Word>>;

/**
 * What a wrong order of the steps would admit or lose, while threads decide and advance the clock. `tickIn(word)` is
 * the tick of a word of TICK.
 */
template <typename Cells>
Counts admittedByThreads(Arena<Linear>& arena, size_t way, int ticks, Word (*tickIn)(Word)) {
  constexpr unsigned DECISIONS_A_TURN = 8;
  constexpr unsigned READINGS_KEPT = 61;
  const Word first = Reading(arena.shape, START_MS).tick;
  Clock clock;
  Counts admitted(ticks + 1);
  std::atomic<Word> late{0};
  inThreads([&](unsigned i) {
    Cells cells(arena.data(), arena.shape);
    const auto admits = [&](Word cost, const Reading& reading) {
      if (decide(cells, way, cost, WORD_LIMIT, reading) != Result::ADMITTED) return false;
      const Word tick = tickIn(cells.decided().tick) - first;
      admitted[tick] += cost;
      if (tick != reading.tick - first) late++;
      return true;
    };
    unsigned decisions = i;
    for (int from = clock.enter(i); from < ticks; from = clock.enter(i)) {
      const Reading reading(arena.shape, FIRST_MS + from * GRANULE_MS);
      const bool isCalm = Clock::isCalm(from);
      // So the reading is late when it is used.
      if (decisions % READINGS_KEPT == 0 && !isCalm) clock.advance(from);
      admits(1 + decisions % 3, reading);
      if (++decisions % DECISIONS_A_TURN != 0) continue;
      const int to = clock.now();
      if (isCalm) clock.advanceCalmly(from, [&] { while (admits(1, reading)) {} });
      else if (!Clock::isCalm(to)) clock.advance(to);
    }
    clock.leave(i);
  });
  CHECK(late > 0, "no reading was late");
  return admitted;
}

template <typename Meter>
Counts admittedInOneWord(int ticks) {
  Arena<Linear> arena(wordShape<Meter>());
  const size_t way = insertWord<Meter>(arena);
  return admittedByThreads<WordCells<Meter>>(arena, way, ticks, tickOf);
}

void aLogAdmitsItsLimitInAnyWindow() {
  constexpr int WINDOW = 3;
  const int ticks = 300'000 / ONE_IN;
  const CellRule rule{COUNTING_LOG, WORD_LIMIT, 0};
  Arena<Linear> arena(Shape(WINDOW * GRANULE_MS, WINDOW, 2, START_MS, false, SUMS_LINEAR, WINDOW, 0, 0, rule));
  const size_t way = arena.insert(KEY, FIRST_MS);
  const Counts admitted = admittedByThreads<LogCells>(arena, way, ticks, [](Word tick) { return tick; });
  Word inside = 0;
  for (int tick = 0; tick < ticks; tick++) {
    inside += admitted[tick] - (tick >= WINDOW ? admitted[tick - WINDOW].load() : 0);
    CHECK(inside <= WORD_LIMIT, "%u in the window that ends in tick %d", inside, tick);
    if (Clock::isRecorded(tick, WINDOW))
      CHECK(inside == WORD_LIMIT, "only %u in the window that ends in tick %d", inside, tick);
  }
}

void aFixedWindowAdmitsItsLimit() {
  const int ticks = 300'000 / ONE_IN;
  const Counts admitted = admittedInOneWord<FixedWindow>(ticks);
  for (int tick = 0; tick < ticks; tick++) {
    CHECK(admitted[tick] <= WORD_LIMIT, "%u in window %d", admitted[tick].load(), tick);
    if (Clock::isRecorded(tick, 0))
      CHECK(admitted[tick] == WORD_LIMIT, "only %u in window %d", admitted[tick].load(), tick);
  }
}

void aTokenBucketAdmitsItsBurstAndItsRate() {
  const int ticks = 300'000 / ONE_IN;
  const Counts admitted = admittedInOneWord<TokenBucket>(ticks);
  int64_t most = 0;  // in any span that ends here, beyond the tokens of its granules
  int64_t inCalm = 0;
  for (int tick = 0; tick < ticks; tick++) {
    const int64_t units = admitted[tick].load();
    most = std::max<int64_t>(most, 0) + units - (tick == 0 ? 0 : TOKENS_A_GRANULE);
    // Readings are at the start of granules, so a span of n granules has the tokens of n - 1.
    CHECK(std::max<int64_t>(most, units) <= WORD_LIMIT, "%lld more than the rate up to granule %d",
          static_cast<long long>(most), tick);
    if (!Clock::isRecorded(tick, 1)) continue;
    inCalm++;
    CHECK(units == TOKENS_A_GRANULE, "%lld in granule %d, after one that left none",
          static_cast<long long>(units), tick);
  }
  CHECK(inCalm > 0, "no granule was calm");
}

/** A rest may be longer than half of the modulus of the ticks, and almost as long as the modulus. */
template <typename Meter>
void aRestLeavesTheWholeLimit() {
  Arena<Linear> arena(wordShape<Meter>(1));
  const size_t way = insertWord<Meter>(arena);
  WordCells<Meter> cells(arena.data(), arena.shape);
  WordEstimates<Meter> estimates(arena.data(), arena.shape, cells);
  const auto unitsAt = [&](double ms) {
    Word units = 0;
    while (admits(cells, way, 1, WORD_LIMIT, Reading(arena.shape, ms))) units++;
    return units;
  };
  double nowMs = std::ceil(START_MS);
  unitsAt(nowMs);
  for (const double restMs : {1.0, 3.0, 13.0, 4095.0, 4096.0, 2097152.0, 536870911.0, 536870913.0,
                              1073741800.0}) {
    nowMs += restMs;
    const bool isRested = !IS_BUCKET<Meter> || restMs >= BUCKET_GRANULES;
    const Word expected = isRested ? WORD_LIMIT : TOKENS_A_GRANULE * static_cast<Word>(restMs);
    const Word units = unitsAt(nowMs);
    CHECK(units == expected, "%u after %.0f ms", units, restMs);
    const Figures figures = estimates.figures(way, false, 1, WORD_LIMIT, Reading(arena.shape, nowMs));
    CHECK(figures.remaining == 0, "%u are left", figures.remaining);
    const double ms = figures.retryAfterMs;
    CHECK(ms == 1 || unitsAt(nowMs + ms - 1) == 0, "%f ms is too long", ms);
    nowMs += ms;
    CHECK(unitsAt(nowMs) > 0, "%f ms is too short", ms);
  }
}

/** A thread that died between the two words of an emptying leaves the mark. The next one finishes. */
template <typename Meter>
void aMarkIsFinished() {
  Arena<Linear> arena(wordShape<Meter>());
  const size_t way = insertWord<Meter>(arena);
  WordCells<Meter> cells(arena.data(), arena.shape);
  const size_t base = cells.base(way);
  const Reading first(arena.shape, START_MS);
  while (admits(cells, way, 1, WORD_LIMIT, first)) {}
  const Reading later(arena.shape, START_MS + 100 * GRANULE_MS);
  arena.data()[base + TICK] = marked(later.tick);
  WordEstimates<Meter> estimates(arena.data(), arena.shape, cells);
  CHECK(estimates.usedInLast(base, later, 1) == 0, "what is marked does not count");
  CHECK(admits(cells, way, WORD_LIMIT, WORD_LIMIT, later), "the whole limit");
  CHECK(!admits(cells, way, 1, WORD_LIMIT, later), "no more");
  CHECK(arena.data()[base + TICK] == settled(later.tick), "settled");
}

template <typename Meter>
void aBlockRefusesUntilItsEnd() {
  Arena<Linear> arena(wordShape<Meter>());
  const size_t way = insertWord<Meter>(arena);
  WordCells<Meter> cells(arena.data(), arena.shape);
  const size_t base = cells.base(way);
  arena.data()[base + ADM] |= SHUT;
  arena.data()[base + UNTIL] = PER_SECOND;  // a second after the origin
  CHECK(!admits(cells, way, 1, WORD_LIMIT, Reading(arena.shape, START_MS + 999)), "blocked");
  CHECK(cells.decided().until == PER_SECOND, "until %u", cells.decided().until);
  CHECK((arena.data()[base + ADM] & SHUT) != 0, "the refusal leaves the block");
  CHECK(admits(cells, way, 1, WORD_LIMIT, Reading(arena.shape, START_MS + 1000)), "the block is over");
}

template <typename Meter>
void aFarTickNeedsANewReading() {
  Arena<Linear> arena(wordShape<Meter>());
  const size_t way = insertWord<Meter>(arena);
  WordCells<Meter> cells(arena.data(), arena.shape);
  const Reading ahead(arena.shape, START_MS + 1e8);
  CHECK(admits(cells, way, 1, WORD_LIMIT, ahead), "far ahead");
  const std::vector<Word> before = arena.words;
  const Result found = decide(cells, way, 1, WORD_LIMIT, Reading(arena.shape, START_MS));
  CHECK(found == Result::NEEDS_READING, "found %d", static_cast<int>(found));
  CHECK(arena.words == before, "nothing has changed");
}

using Tests = std::vector<std::pair<std::string, std::function<void()>>>;

template <typename Meter>
void addTestsOf(Tests& tests, const std::string& name) {
  tests.emplace_back(name + ": a rest leaves the whole limit", aRestLeavesTheWholeLimit<Meter>);
  tests.emplace_back(name + ": a mark is finished", aMarkIsFinished<Meter>);
  tests.emplace_back(name + ": a block refuses until its end", aBlockRefusesUntilItsEnd<Meter>);
  tests.emplace_back(name + ": a far tick needs a new reading", aFarTickNeedsANewReading<Meter>);
}

void addTestsOfWords(Tests& tests) {
  tests.emplace_back("a log: threads admit exactly the limit in any window", aLogAdmitsItsLimitInAnyWindow);
  tests.emplace_back("a fixed window: threads admit exactly the limit in each window",
                     aFixedWindowAdmitsItsLimit);
  tests.emplace_back("a token bucket: threads admit at most the burst and the rate",
                     aTokenBucketAdmitsItsBurstAndItsRate);
  addTestsOf<FixedWindow>(tests, "a fixed window");
  addTestsOf<TokenBucket>(tests, "a token bucket");
}

}  // namespace
