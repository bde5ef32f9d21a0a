// The protocol in C++ alone: on plain memory, without Node, by real threads. `npm run test:native` builds and runs it.
// What TypeScript and this must do alike is held by test/native/; here it is what they promise.
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "seeds.h"

#include "../batch.h"

using namespace millrace;

namespace {

std::atomic<int> failed{0};
constexpr int MOST_PRINTED = 20;

#define CHECK(is, ...)                                     \
  do {                                                     \
    if (!(is) && failed++ < MOST_PRINTED) {                \
      std::printf("%s:%d: %s: ", __FILE__, __LINE__, #is); \
      std::printf(__VA_ARGS__);                            \
      std::printf("\n");                                   \
    }                                                      \
  } while (false)

constexpr double WINDOW_MS = 10'000;
constexpr uint32_t GRANULES = 10;
constexpr double GRANULE_MS = WINDOW_MS / GRANULES;
constexpr double START_MS = 1'000'123;

/** An arena in which keys have been given their homes; TypeScript does that otherwise. */
struct Arena {
  Shape shape;
  std::vector<Word> words;

  explicit Arena(uint32_t sets, bool isSmooth = false, uint32_t granules = GRANULES)
      : shape(granules * GRANULE_MS, granules, sets, START_MS, isSmooth), words(shape.words - SEEDED_SHORTFALL) {}

  Word* data() { return seededShift(words.data()); }

  size_t insert(Name name, double nowMs) {
    const size_t way = (uint64_t{name.lo} * shape.sets >> 32) * WAYS_PER_SET + (name.lo & (WAYS_PER_SET - 1));
    const size_t base = shape.waysAt + way * shape.wayWords;
    words[NAMES_AT + way] = name.lo;
    words[base + HI] = name.hi;
    words[base + TICK] = Reading(shape, nowMs).tick;
    words[base + ADM] = LIVE;
    return way;
  }
};

constexpr Name KEY{0x1234, 0x5678};

/** As the engine decides: the attempt first, then at length. */
Found decide(Cells& cells, size_t way, Word cost, Word limit, const Reading& reading, Name name = KEY) {
  const Found found = cells.attempt(way, name, cost, limit, reading);
  if (found != Found::UNDECIDED) return found;
  if (!cells.enter(cells.base(way), reading)) return Found::NEEDS_READING;
  return cells.decide(way, name, cost, limit, reading);
}

bool admits(Cells& cells, size_t way, Word cost, Word limit, const Reading& reading, Name name = KEY) {
  const Found found = decide(cells, way, cost, limit, reading, name);
  CHECK(found == Found::ADMITTED || found == Found::FULL, "found %d", static_cast<int>(found));
  return found == Found::ADMITTED;
}

void admitsTheLimitInAnyWindowAndAllOfItAfterwards() {
  Arena arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells cells(arena.data(), arena.shape);
  // One unit a granule, round many laps: never more than the limit in a window and a granule, and never idle for long.
  constexpr Word limit = 5;
  std::vector<int> admitted;
  for (int tick = 0; tick < 5'000; tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    admitted.push_back(admits(cells, way, 1, limit, reading) ? 1 : 0);
    int sum = 0;
    for (size_t i = admitted.size() > GRANULES ? admitted.size() - GRANULES - 1 : 0; i < admitted.size(); i++) {
      sum += admitted[i];
    }
    CHECK(sum <= static_cast<int>(limit), "%d in the window that ends in granule %d", sum, tick);
    if (tick > 20) CHECK(sum == static_cast<int>(limit), "only %d in the window that ends in granule %d", sum, tick);
  }
}

void aReturnAfterAnyNumberOfLapsFindsTheWholeLimit() {
  Arena arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells cells(arena.data(), arena.shape);
  double nowMs = START_MS;
  for (int laps : {1, 2, 63, 64, 65, 255, 256, 257, 512, 1000, 1'000'000}) {
    const Reading reading(arena.shape, nowMs);
    CHECK(admits(cells, way, 7, 7, reading), "before %d laps", laps);
    CHECK(!admits(cells, way, 1, 7, reading), "full before %d laps", laps);
    nowMs += laps * (WINDOW_MS + GRANULE_MS);
  }
}

void theLastCellOfAnArenaIsDecidedWithinIt() {
  Arena arena(2);
  constexpr Name last{0xffffffff, 0xffffffff};
  const size_t way = arena.insert(last, START_MS);
  Cells cells(arena.data(), arena.shape);
  CHECK(cells.base(way) + arena.shape.wayWords == arena.shape.words, "way %zu is the last", way);
  for (uint32_t tick = 0; tick < 3 * (GRANULES + 1); tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    const bool isFirst = tick % (GRANULES + 1) == 0;
    CHECK(admits(cells, way, 5, 5, reading, last) == isFirst, "in granule %u", tick);
  }
}

void aTickFarAheadAsksForANewReading() {
  Arena arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells cells(arena.data(), arena.shape);
  CHECK(cells.enter(cells.base(way), Reading(arena.shape, START_MS + 7'200'000)), "two hours on");
  const Word before = arena.words[cells.base(way) + TICK];
  CHECK(!cells.enter(cells.base(way), Reading(arena.shape, START_MS)), "two hours back is not believed");
  CHECK(arena.words[cells.base(way) + TICK] == before, "the tick stays");
}

void aBatchDecidesInOrderAndStopsAtANewKey() {
  Arena arena(100);
  std::vector<Word> fingerprints;
  for (Word i = 0; i < 500; i++) {
    const uint64_t key = i / 2;  // each twice, and no two in one home
    const Word set = static_cast<Word>(((key % 100 << 32) + 99) / 100);
    const Name name{((set + 16) & ~15u) | static_cast<Word>(key / 100), i / 2};
    if (i % 2 == 0 && i != 400) arena.insert(name, START_MS);
    fingerprints.insert(fingerprints.end(), {name.lo, name.hi});
  }
  std::vector<uint8_t> allowed(500, 9);
  std::vector<double> at(500);
  Batch batch{};
  batch.fingerprints = fingerprints.data();
  batch.cost = 2;
  batch.limit = 3;
  batch.to = 500;
  batch.allowed = allowed.data();
  batch.at = at.data();
  const Tally tally = Batches(arena.data(), arena.shape).admit(batch, START_MS);
  CHECK(tally.stopped == 400, "stopped at %zu", tally.stopped);
  CHECK(tally.admitted == 200, "%u admitted", tally.admitted);
  for (size_t i = 0; i < 400; i++) {
    CHECK(allowed[i] == (i % 2 == 0 ? 1 : 0) && at[i] == START_MS, "entry %zu: %d", i, allowed[i]);
  }
  CHECK(allowed[400] == 9, "what was not decided is left as it was");
}

/**
 * All threads on one cell; who is refused turns the clock on by a window and a granule, once for all. What was admitted
 * while the clock stood, seen before and after, was charged in that very tick.
 */
void threadsNeverAdmitMoreThanTheLimit(bool isSmooth, uint32_t granules, Word cost) {
  constexpr Word limit = 20;
  constexpr int PHASES = 50'000;
  Arena arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  const double turnMs = (granules + 1) * GRANULE_MS;
  std::atomic<int> phase{0};
  std::vector<std::atomic<Word>> admitted(PHASES);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&] {
      Cells cells(arena.data(), arena.shape);
      for (int now = 0; now < PHASES; now = phase.load()) {
        const Found found = decide(cells, way, cost, limit, Reading(arena.shape, START_MS + now * turnMs));
        if (found == Found::ADMITTED && phase.load() == now) admitted[now] += cost;
        if (found == Found::FULL) phase.compare_exchange_strong(now, now + 1);
        // NEEDS_READING: this thread was kept from running while the others went on by an hour.
      }
    });
  }
  for (auto& thread : threads) thread.join();
  int full = 0;
  for (int i = 0; i < PHASES; i++) {
    CHECK(admitted[i] <= limit, "%u in window %d", admitted[i].load(), i);
    full += admitted[i] == limit / cost * cost;
  }
  CHECK(full > PHASES / 2, "only %d of %d windows were used up", full, PHASES);
}

/**
 * A clock that any thread turns on by a granule at any moment, round a ring of four buckets: decisions meet rollovers, undo what
 * they charged in a granule that ended, and sum anew all the time. What was admitted was charged between the granule of before
 * and that of after: it counts in every window in which all of that lies.
 */
void threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns(bool isSmooth) {
  constexpr uint32_t granules = 3;
  constexpr Word limit = 12;
  constexpr int TICKS = 300'000;
  constexpr unsigned DECISIONS_A_TURN = 8;
  constexpr unsigned READINGS_KEPT = 61;
  Arena arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  std::atomic<int> clock{0};
  std::vector<std::array<std::atomic<Word>, granules + 1>> admitted(TICKS);
  std::atomic<Word> late{0};
  std::latch begin(4);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; i++) {
    threads.emplace_back([&, i] {
      Cells cells(arena.data(), arena.shape);
      unsigned decisions = i;
      begin.arrive_and_wait();
      for (int from = clock.load(); from < TICKS; from = clock.load()) {
        const Word cost = 1 + decisions % 3;
        const Reading reading(arena.shape, START_MS + from * GRANULE_MS);
        int same = from;
        if (decisions % READINGS_KEPT == 0) clock.compare_exchange_strong(same, from + 1);  // late when it is used
        const Found found = decide(cells, way, cost, limit, reading);
        int to = clock.load();
        if (found == Found::ADMITTED && to - from <= static_cast<int>(granules)) {
          admitted[from][to - from] += cost;
          if (to > from) late++;
        }
        if (++decisions % DECISIONS_A_TURN == 0) clock.compare_exchange_strong(to, to + 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  // A smooth window's oldest granule counts in part: there the whole ones are looked at.
  const int window = isSmooth ? granules : granules + 1;
  uint64_t all = 0;
  for (int first = 0; first + window <= TICKS; first++) {
    Word inside = 0;
    for (int from = first; from < first + window; from++) {
      for (int to = from; to < first + window; to++) inside += admitted[from][to - from];
    }
    CHECK(inside <= limit, "%u in the window of granules %d to %d", inside, first, first + window - 1);
    for (const auto& units : admitted[first]) all += units;
  }
  CHECK(all > uint64_t{TICKS} * limit / window / 2, "only %llu units", static_cast<unsigned long long>(all));
  CHECK(late > 0, "no reading was late");
}

}  // namespace

int main() {
  const std::vector<std::pair<const char*, std::function<void()>>> tests{
      {"admits the limit in any window, and all of it afterwards", admitsTheLimitInAnyWindowAndAllOfItAfterwards},
      {"a return after any number of laps finds the whole limit", aReturnAfterAnyNumberOfLapsFindsTheWholeLimit},
      {"the last cell of an arena is decided within it", theLastCellOfAnArenaIsDecidedWithinIt},
      {"a tick far ahead asks for a new reading", aTickFarAheadAsksForANewReading},
      {"a batch decides in order, and stops at a new key", aBatchDecidesInOrderAndStopsAtANewKey},
      {"threads, cost 1: never over", [] { threadsNeverAdmitMoreThanTheLimit(false, GRANULES, 1); }},
      {"threads, cost 3: never over", [] { threadsNeverAdmitMoreThanTheLimit(false, GRANULES, 3); }},
      {"threads, a window of one granule: never over", [] { threadsNeverAdmitMoreThanTheLimit(false, 1, 1); }},
      {"threads, smooth: never over", [] { threadsNeverAdmitMoreThanTheLimit(true, GRANULES, 1); }},
      {"threads, a clock that turns: never over", [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns(false); }},
      {"threads, a clock that turns, smooth: never over", [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns(true); }},
  };
  int broken = 0;
  for (const auto& [name, run] : tests) {
    const int before = failed;
    run();
    if (failed > before) broken++;
    std::printf("%s %s\n", failed > before ? "FAIL" : "ok  ", name);
  }
  std::printf("%zu passed, %d failed\n", tests.size() - static_cast<size_t>(broken), broken);
  return broken > 0 ? 1 : 0;
}
