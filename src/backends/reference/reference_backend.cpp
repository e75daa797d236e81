#include "backends/reference/reference_backend.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>

#include "backends/host_fill.h"
#include "backends/operation_checks.h"
#include "backends/placement.h"
#include "backends/reference/kinds.h"
#include "base/error.h"
#include "formats/quantization/nf4.h"
#include "program/kinds/dispatch.h"
#include "program/work/decisions.h"

namespace snug::backends::reference {
namespace {

class HeapArena : public Arena {
 public:
  HeapArena(program::Space space, int64_t bytes) : Arena(space), bytes_(bytes) {
    if (bytes == 0) return;
    const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<std::byte*>(
        std::aligned_alloc(static_cast<size_t>(kAlignment), static_cast<size_t>(rounded))));
    if (!data_)
      base::throw_user_error(
          "The system refused {} bytes of {} memory. Lower max_length or the micro-batch, or raise "
          "the process's memory limit.",
          bytes, program::name_of(space));
    std::memset(data_.get(), 0, static_cast<size_t>(bytes));
  }
  std::byte* data() const override { return data_.get(); }
  int64_t bytes() const override { return bytes_; }
  // The bytes that the allocator has set aside, without its rounding.
  std::optional<int64_t> allocated_bytes() const override {
    const auto usable = static_cast<int64_t>(malloc_usable_size(data_.get()));
    return usable - (usable - bytes_) % kPageBytes;
  }

 private:
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t bytes_;
};

bool is_f64(const Buffer& buffer) { return buffer.dtype == base::DType::f64; }

bool computes_in_double(const Invocation& invocation) {
  bool found = false;
  for (const auto buffers : {invocation.reads, invocation.writes, invocation.updates})
    for (const Buffer& buffer : buffers) found = found || is_f64(buffer);
  return found;
}

bool computes_in_double(const program::OperationView& view) {
  bool found = false;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    if (id != view.operation.workspace)
      found = found || view.program.tensor(id).dtype == base::DType::f64;
  });
  return found;
}

void check_undecided(const program::Operation& operation) {
  const program::Kind kind = operation.kind();
  program::Operation undecided;
  undecided.attributes = program::default_attributes(kind);
  const auto known = program::decisions_of(undecided);
  const auto planned = program::decisions_of(operation);
  for (size_t i = 0; i < planned.size(); ++i) {
    const auto& [name, value] = planned[i];
    SNUG_CHECK(value == known[i].second, "{} with {} {}, which the reference does not run",
               program::name_of(kind), name, program::decision_text(kind, name, value));
  }
}

}  // namespace

int64_t ReferenceBackend::capacity_bytes(program::Space space) const {
  if (space == program::Space::device && device_memory_bytes_ > 0) return device_memory_bytes_;
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

bool ReferenceBackend::runs(const program::OperationView& view) const {
  bool known = true;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    const program::DType type = view.program.tensor(id).dtype;
    if (id != view.operation.workspace)
      known =
          known && (base::is_float(type) || type == base::DType::i32 || type == base::DType::u8);
  });
  return known;
}

program::Workspace ReferenceBackend::workspace(const program::OperationView& view) const {
  const auto elements = program::dispatch_run<int64_t>(
      view.operation.attributes, [&]<typename Struct>(const Struct& attributes) {
        const KindMeaning<Struct>& kind = MeaningOf<Struct>::kDefined;
        return kind.scratch_elements != nullptr ? kind.scratch_elements(attributes, view) : 0;
      });
  const int64_t size = computes_in_double(view) ? sizeof(double) : sizeof(float);
  return {.bytes = elements * size};
}

program::Attributes ReferenceBackend::decide(const program::OperationView& view) const {
  return program::undecided(view.operation.attributes);
}

std::unique_ptr<Arena> ReferenceBackend::allocate(program::Space space, int64_t bytes) {
  return std::make_unique<HeapArena>(space, bytes);
}

std::unique_ptr<Prepared> ReferenceBackend::prepare(const program::OperationView& view) {
  // In f64 it also computes kinds that are only defined for narrower types, as the reference for
  // those.
  if (!computes_in_double(view)) check_runs(view, *this);
  check_placement(view, *this);
  check_not_joined(view, *this);
  check_awaited_once(view);
  check_undecided(view.operation);
  return nullptr;
}

void ReferenceBackend::run(const Invocation& given) {
  given.note_run();
  Invocation invocation = given;
  invocation.collectives = &collectives_;
  program::dispatch_run<void>(*invocation.attributes, [&](const auto& attributes) {
    if (computes_in_double(invocation))
      run_kind<double>(attributes, invocation);
    else
      run_kind<float>(attributes, invocation);
  });
}

void ReferenceBackend::copy(void* destination, const void* source, int64_t bytes) {
  std::memcpy(destination, source, static_cast<size_t>(bytes));
}

void ReferenceBackend::fill(const Buffer& tensor, const RandomValues& values, int64_t first) {
  fill_on_host(tensor, values, first, {0, tensor.elements()});
}

void ReferenceBackend::quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) {
  formats::quantize_nf4(values.dtype, values.data, values.elements(), codes, absmax);
}

}  // namespace snug::backends::reference
