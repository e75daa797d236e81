// Both ends lie in the same memory and the same threads copy that compute: a transfer is done at
// once.
#include <cstring>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {

void run(const program::Transfer&, const Invocation& invocation, CpuContext&) {
  constexpr int64_t kBytesATask = int64_t{1} << 20;
  const std::byte* from = invocation[program::Transfer::kX].data;
  std::byte* to = invocation[program::Transfer::kY].data;
  parallel_ranges(invocation[program::Transfer::kX].bytes(), kBytesATask,
                  [&](int64_t begin, int64_t end) {
                    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
                  });
}

void run(const program::Await&, const Invocation&, CpuContext&) {}

}  // namespace snug::backends::cpu
