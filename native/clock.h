// The system's monotonic clock. `defaultClock()` of src/native/default-clock.ts compares `monotonicClock` with it.
#pragma once

#include <ctime>

namespace millrace {

#if !defined(_WIN32)
inline constexpr bool READS_CLOCK = true;
/** Milliseconds, computed by the same steps as in TypeScript. */
inline double monotonicMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}
#else
inline constexpr bool READS_CLOCK = false;
inline double monotonicMs() { return 0; }
#endif

}  // namespace millrace
