// Both ends are in the same memory, and the threads that compute also copy, so a transfer is done
// at once. Collectives are waited for.
#include <cstring>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/host_collectives.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::backends::cpu {
namespace {

void copy_with_all_threads(const Buffer& x, const Buffer& y) {
  constexpr int64_t kBytesPerTask = int64_t{1} << 20;
  parallel_ranges(x.bytes(), kBytesPerTask, [&](int64_t begin, int64_t end) {
    std::memcpy(y.data + begin, x.data + begin, static_cast<size_t>(end - begin));
  });
}

void run(const program::Copy&, const Invocation& invocation, CpuContext&) {
  copy_with_all_threads(invocation[program::Copy::kX], invocation[program::Copy::kY]);
}

void run(const program::Transfer&, const Invocation& invocation, CpuContext&) {
  copy_with_all_threads(invocation[program::Transfer::kX], invocation[program::Transfer::kY]);
}

void run(const program::Await&, const Invocation& invocation, CpuContext& context) {
  context.collectives->await(invocation);
}

}  // namespace

SNUG_CPU_KIND(Copy);
SNUG_CPU_KIND(Transfer);
SNUG_CPU_KIND(Await);

}  // namespace snug::backends::cpu
