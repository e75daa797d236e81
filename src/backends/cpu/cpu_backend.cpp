#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/arena.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/loss/loss_plan.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "backends/host_fill.h"
#include "backends/operation_checks.h"
#include "backends/placement.h"
#include "base/available_memory.h"
#include "base/error.h"
#include "base/threads.h"
#include "formats/quantization/nf4.h"
#include "program/kinds/dispatch.h"

namespace snug::backends::cpu {
namespace {

// Starts the threads once, here, and not inside a step. There are never more than asked for, even
// if the processor has more: the exact scratch sizes depend on the number.
int start_threads(int wanted) {
  const int threads = base::thread_count(wanted);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
#pragma omp parallel
  { static_cast<void>(current_thread()); }
  return threads;
}

// The kernel tables in this build.
struct KernelTable {
  Isa isa;
  const Kernels* kernels;
};
#define X(name) KernelTable{Isa::name, &isa_##name::kKernels},
constexpr std::array kKernelTables{SNUG_BUILT_ISAS};
#undef X

const Kernels& kernels_of(Isa isa) {
  const auto found = std::ranges::find(kKernelTables, isa, &KernelTable::isa);
  SNUG_CHECK(found != kKernelTables.end(), "this build has no kernels for x86-64-{}", name_of(isa));
  return *found->kernels;
}

// Calls f(attributes, functions of their kind).
template <typename Result, typename F>
Result ask(const program::Attributes& attributes, F&& f) {
  return program::dispatch_run<Result>(attributes, [&]<typename Struct>(const Struct& concrete) {
    return f(concrete, FunctionsOf<Struct>::kDefined);
  });
}

}  // namespace

CpuContext context_of(Isa isa, int threads) {
  return {.isa = isa, .kernels = kernels_of(isa), .threads = threads};
}

CpuContext open_context(int threads) {
  const Isa isa = detect_isa();
  limit_onednn(onednn_isa(isa));
  return context_of(isa, start_threads(threads));
}

CpuBackend::CpuBackend(const BackendOptions& options)
    : collectives_(options.mesh),
      context_(open_context(options.threads)),
      device_budget_bytes_(options.device_memory_bytes),
      node_ranks_(options.node_ranks) {
  context_.collectives = &collectives_;
}

std::string CpuBackend::library_versions() const {
  const bool without_tiles = context_.isa == Isa::amx && !onednn_has_tiles();
  return fmt::format("oneDNN {}{}, x86-64-{}, {} threads", onednn_version(),
                     without_tiles ? " without tiles" : "", name_of(context_.isa),
                     context_.threads);
}

int64_t CpuBackend::capacity_bytes(program::Space space) const {
  if (space == program::Space::device && device_budget_bytes_ > 0) return device_budget_bytes_;
  return base::available_memory_bytes() / node_ranks_;
}

bool CpuBackend::runs(const program::OperationView& view) const {
  return has_known_types(view) &&
         ask<bool>(view.operation.attributes, [&](const auto& attributes, const auto& kind) {
           return kind.supports == nullptr || kind.supports(attributes, view, context_);
         });
}

program::Workspace CpuBackend::workspace(const program::OperationView& view) const {
  omp_set_num_threads(context_.threads);
  return ask<program::Workspace>(view.operation.attributes, [&](const auto& attributes,
                                                                const auto& kind) {
    using program::WorkspaceBasis;
    if (kind.workspace_bytes == nullptr) return program::Workspace();
    const bool is_asked = kind.asks_library != nullptr && kind.asks_library(attributes);
    return program::Workspace{.bytes = kind.workspace_bytes(attributes, view, context_),
                              .basis = is_asked ? WorkspaceBasis::asked : WorkspaceBasis::computed};
  });
}

program::Attributes CpuBackend::decide(const program::OperationView& view) const {
  return ask<program::Attributes>(
      view.operation.attributes, [&](const auto& attributes, const auto& kind) {
        return kind.decide != nullptr ? kind.decide(attributes, view, context_) : attributes;
      });
}

std::unique_ptr<Arena> CpuBackend::allocate(program::Space space, int64_t bytes) {
  return map_arena(space, bytes);
}

std::unique_ptr<Prepared> CpuBackend::prepare(const program::OperationView& view) {
  omp_set_num_threads(context_.threads);
  check_runs(view, *this);
  check_placement(view, *this);
  check_not_joined(view, *this);
  check_awaited_once(view);
  check_strides(view);
  check_workspace(view, workspace(view).bytes, library_versions());
  return ask<std::unique_ptr<Prepared>>(
      view.operation.attributes, [&](const auto& attributes, const auto& kind) {
        return kind.prepare != nullptr ? kind.prepare(attributes, view, context_) : nullptr;
      });
}

void CpuBackend::run(const Invocation& invocation) {
  invocation.note_run();
  omp_set_num_threads(context_.threads);
  ask<void>(*invocation.attributes, [&](const auto& attributes, const auto& kind) {
    kind.run(attributes, invocation, context_);
  });
}

void CpuBackend::copy(void* destination, const void* source, int64_t bytes) {
  std::memcpy(destination, source, static_cast<size_t>(bytes));
}

void CpuBackend::fill(const Buffer& tensor, const RandomValues& values, int64_t first) {
  constexpr int64_t kElementsATask = int64_t{1} << 16;
  omp_set_num_threads(context_.threads);
  parallel_ranges(tensor.elements(), kElementsATask, [&](int64_t begin, int64_t end) {
    fill_on_host(tensor, values, first, {begin, end});
  });
}

void CpuBackend::quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) {
  formats::quantize_nf4(values.dtype, values.data, values.elements(), codes, absmax);
}

}  // namespace snug::backends::cpu
