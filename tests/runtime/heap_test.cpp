// Loading and saving must not pass tensors through the heap: the plan has no room for them there.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/temporary_folder.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/save_model.h"
#include "tiny_run.h"

namespace {

std::atomic<size_t> largest_allocation{0};

void* counted(size_t bytes) {
  size_t largest = largest_allocation.load();
  while (bytes > largest && !largest_allocation.compare_exchange_weak(largest, bytes)) {
  }
  void* data = std::malloc(std::max<size_t>(bytes, 1));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete[](void* data, size_t) noexcept { std::free(data); }

namespace snug::runtime {
namespace {

using base::DType;
using testing::TemporaryFolder;
using testing::TinyRun;

// The buffer through which small files are copied is 256 KiB.
constexpr size_t kLimitBytes = 300 << 10;

TEST(Heap, SavingAndLoadingStayOutOfIt) {
  models::ModelConfig config = testing::tiny_model();
  config.vocab_size = 200'000;  // 9.6 MB in fp32
  TemporaryFolder folder;
  TinyRun run({.model = config, .compute = DType::bf16, .init_seed = 1});
  models::ModelConfig in_files = config;
  in_files.file_width = 2;
  TinyRun reader({.model = in_files, .compute = DType::bf16});
  random_weights(config, run.executor());
  run.executor().run(program::ProgramName::prepare);
  CheckpointOptions options;
  options.output_dir = folder / "run";
  std::filesystem::create_directory(options.output_dir);
  options.model.config = config;

  largest_allocation = 0;
  save_model(folder / "model", {config, {}}, run.executor());
  EXPECT_GT(largest_allocation, 500U) << "allocations are seen";
  EXPECT_LT(largest_allocation, kLimitBytes);
  save_checkpoint(options, {}, run.executor());
  EXPECT_LT(largest_allocation, kLimitBytes);
  restore_checkpoint(folder / "run/checkpoint-0", config, run.executor());
  EXPECT_LT(largest_allocation, kLimitBytes);
  load_weights(folder / "model", config, reader.executor());  // bf16 file, fp32 masters
  EXPECT_LT(largest_allocation, kLimitBytes);
}

}  // namespace
}  // namespace snug::runtime
