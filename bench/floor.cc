// The lower bound for any table of counters: one atomic addition to one cell per decision. It has no clock,
// no window, no hash and no search; it reads the cell's index from a list in the random order that keys.ts
// also makes.
//
//   floor KEYS OPERATIONS DISTANCE    prints nanoseconds per operation
//
// DISTANCE is the number of operations by which a cell is prefetched; 0 turns prefetching off. Prefetching
// hides the memory's latency behind the operations in between. A batch can do that, single decisions cannot.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// The least that a cell must hold: a key's fingerprint and its count. Four cells fit in a cache line.
struct alignas(16) Cell {
  std::atomic<uint64_t> count{0};
  uint64_t fingerprint = 0;
};
static_assert(sizeof(Cell) == 16);

// xorshift32, like randomOrder in keys.ts. The order repeats past its end, so that a prefetch needs no bounds
// check.
static std::vector<uint32_t> random_order(uint32_t keys, size_t length, size_t beyond) {
  std::vector<uint32_t> order(length + beyond);
  uint32_t state = 0x9e3779b9;
  for (size_t i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    order[i] = static_cast<uint32_t>((uint64_t{state} * keys) >> 32);
  }
  for (size_t i = 0; i < beyond; i++) order[length + i] = order[i % length];
  return order;
}

static void plain(std::vector<Cell>& table, const std::vector<uint32_t>& order, size_t length) {
  for (size_t i = 0; i < length; i++) table[order[i]].count.fetch_add(1);
}

static void prefetching(std::vector<Cell>& table, const std::vector<uint32_t>& order, size_t length,
                        size_t distance) {
  for (size_t i = 0; i < length; i++) {
    __builtin_prefetch(&table[order[i + distance]], 1);
    table[order[i]].count.fetch_add(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto keys = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const size_t length = std::strtoull(argv[2], nullptr, 10);
  const size_t distance = std::strtoull(argv[3], nullptr, 10);
  if (keys == 0 || length == 0) return 2;

  std::vector<Cell> table(keys);
  const auto order = random_order(keys, length, distance);
  const auto run = [&] { distance == 0 ? plain(table, order, length) : prefetching(table, order, length, distance); };
  run();  // warm-up: maps the pages, fills the caches, raises the core's frequency

  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;

  uint64_t counted = 0;
  for (const auto& cell : table) counted += cell.count;
  if (counted != 2 * length) return 1;
  std::printf("%.3f\n", elapsed.count() / static_cast<double>(length));
}
