// Preloaded into a server whose instructions are counted: a clock that goes on by one step at each reading. So what a
// server does depends on its requests, and not on how slow this machine runs it.
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace {
// A request reads the clock about five times, and takes a server some 20 us.
constexpr std::int64_t STEP_NS = 4'000;
constexpr std::int64_t SECOND_NS = 1'000'000'000;
constexpr std::int64_t MONOTONIC_NS = 100'000 * SECOND_NS;
constexpr std::int64_t WALL_NS = 1'800'000'000 * SECOND_NS;

std::atomic<std::int64_t> passed_ns{0};

std::int64_t next(std::int64_t from_ns) {
  return from_ns + passed_ns.fetch_add(STEP_NS, std::memory_order_relaxed);
}
}  // namespace

extern "C" {
int clock_gettime(clockid_t clock, timespec* time) {
  const bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const std::int64_t ns = next(is_wall ? WALL_NS : MONOTONIC_NS);
  *time = {ns / SECOND_NS, ns % SECOND_NS};
  return 0;
}

int gettimeofday(timeval* time, void*) {
  const std::int64_t ns = next(WALL_NS);
  *time = {ns / SECOND_NS, ns % SECOND_NS / 1'000};
  return 0;
}

time_t time(time_t* to) {
  const time_t seconds = next(WALL_NS) / SECOND_NS;
  if (to != nullptr) *to = seconds;
  return seconds;
}
}
