#include "runtime/execution/rehearsal.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "backends/backend.h"
#include "base/error.h"
#include "runtime/execution/executor.h"
#include "runtime/process/process_memory.h"

namespace snug::runtime {
namespace {

using backends::Arena;
using backends::Backend;
using backends::Buffer;
using program::OperationView;

// Addresses without memory behind them, which must not be read or written.
class ArenaOfNothing : public Arena {
 public:
  ArenaOfNothing(program::Space space, int64_t bytes) : Arena(space), bytes_(bytes) {}
  // The address is not null and satisfies every backend's alignment.
  std::byte* data() const override { return reinterpret_cast<std::byte*>(uintptr_t{1} << 16); }
  int64_t bytes() const override { return bytes_; }
  std::optional<int64_t> allocated_bytes() const override { return 0; }

 private:
  int64_t bytes_;
};

// Prepares operations as the wrapped backend does, but has no memory to run them in.
class RehearsalBackend : public Backend {
 public:
  explicit RehearsalBackend(Backend& backend) : backend_(backend) {}

  std::string name() const override { return backend_.name(); }
  std::string library_versions() const override { return backend_.library_versions(); }
  int64_t capacity_bytes(program::Space space) const override {
    return backend_.capacity_bytes(space);
  }
  int64_t alignment_bytes() const override { return backend_.alignment_bytes(); }
  bool runs(const OperationView& view) const override { return backend_.runs(view); }
  program::Workspace workspace(const OperationView& view) const override {
    return backend_.workspace(view);
  }
  program::Attributes decide(const OperationView& view) const override {
    return backend_.decide(view);
  }
  int32_t launches(const OperationView& view) const override { return backend_.launches(view); }
  std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) override {
    return std::make_unique<ArenaOfNothing>(space, bytes);
  }
  std::unique_ptr<backends::Prepared> prepare(const OperationView& view) override {
    return backend_.prepare(view);
  }
  void run(const backends::Invocation& /*invocation*/) override { refuse(); }
  void copy(void* /*destination*/, const void* /*source*/, int64_t /*bytes*/) override { refuse(); }
  void fill(const Buffer& /*tensor*/, const backends::RandomValues& /*values*/,
            int64_t /*first*/) override {
    refuse();
  }
  void quantize_nf4(const Buffer& /*values*/, uint8_t* /*codes*/, float* /*absmax*/) override {
    refuse();
  }
  void synchronise() override {}

 private:
  static void refuse() { SNUG_CHECK(false, "a rehearsal has no memory to run in"); }

  Backend& backend_;
};

// Reads a byte of every page of the program's code, which makes it resident; the first object is
// the program itself.
int read_code(dl_phdr_info* object, size_t /*size*/, void* /*data*/) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    for (uintptr_t at = begin; at < begin + segment.p_filesz; at += page)
      static_cast<void>(*reinterpret_cast<const volatile char*>(at));
  }
  return 1;
}

int64_t rehearsed_outside_bytes(const plan::Job& job, program::Target& target) {
  auto* const backend = dynamic_cast<Backend*>(&target);
  if (backend == nullptr || backend->device()) return outside_bytes();
  ::dl_iterate_phdr(read_code, nullptr);
  release_freed_memory();
  int64_t resident_bytes = 0;
  {
    RehearsalBackend rehearsal(*backend);
    const runtime::Executor executor(job, rehearsal);
    resident_bytes = process_memory().resident_bytes;
  }
  // Memory that was freed is not part of the run's peak.
  release_freed_memory();
  return resident_bytes;
}

}  // namespace

plan::ProcessBytes rehearse(const plan::Job& job, program::Target& target) {
  const int64_t outside_bytes = rehearsed_outside_bytes(job, target);
  return {.outside_bytes = outside_bytes,
          .resident_peak_bytes = process_memory().resident_peak_bytes};
}

}  // namespace snug::runtime
