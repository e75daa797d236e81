// Training steps allocate nothing: malloc, posix_memalign, aligned_alloc and mmap are interposed
// for the whole process over three steps. Nothing above 4 KiB is asked for, and the total does not
// grow.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "../base/temporary_folder.h"
#include "backends/backend.h"
#include "backends/cpu/isa.h"
#include "formats/recipe/recipe.h"
#include "plan/spec/spec.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "train/batch_loader.h"
#include "train/data.h"
#include "train/document_steps.h"
#include "train/trainer.h"

namespace {

std::atomic<bool> g_watching{false};
std::atomic<int64_t> g_largest{0};
std::atomic<int64_t> g_growth{0};
std::atomic<int64_t> g_calls{0};

void note(int64_t bytes) {
  if (!g_watching) return;
  ++g_calls;
  int64_t largest = g_largest;
  while (bytes > largest && !g_largest.compare_exchange_weak(largest, bytes)) {
  }
}

void grow(int64_t bytes) {
  if (g_watching) g_growth += bytes;
}

void* noted(void* block, size_t bytes) {
  note(static_cast<int64_t>(bytes));
  if (block != nullptr) grow(static_cast<int64_t>(malloc_usable_size(block)));
  return block;
}

}  // namespace

// glibc's own entry points, which the interposed functions stand in front of.
extern "C" {
void* __libc_malloc(size_t);            // NOLINT
void* __libc_calloc(size_t, size_t);    // NOLINT
void* __libc_realloc(void*, size_t);    // NOLINT
void* __libc_memalign(size_t, size_t);  // NOLINT
void __libc_free(void*);                // NOLINT

void* malloc(size_t bytes) { return noted(__libc_malloc(bytes), bytes); }
void* calloc(size_t count, size_t bytes) {
  return noted(__libc_calloc(count, bytes), count * bytes);
}
void* realloc(void* block, size_t bytes) {
  if (block != nullptr) grow(-static_cast<int64_t>(malloc_usable_size(block)));
  return noted(__libc_realloc(block, bytes), bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  return noted(__libc_memalign(alignment, bytes), bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return noted(__libc_memalign(alignment, bytes), bytes);
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = noted(__libc_memalign(alignment, bytes), bytes);
  return *block == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  if (block != nullptr) grow(-static_cast<int64_t>(malloc_usable_size(block)));
  __libc_free(block);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  note(static_cast<int64_t>(bytes));
  grow(static_cast<int64_t>(bytes));
  // NOLINTNEXTLINE: the kernel's answer is an address
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}

namespace snug::train {
namespace {

// Steps of a run on the example's instructions, from random weights, in this process.
void expect_steady(const std::vector<std::string>& overrides) {
  std::vector<std::string> words{"model=examples/wordnet", "data=examples/wordnet/train.jsonl",
                                 "init=random", "max_length=128", "max_steps=8"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  const formats::Recipe recipe = formats::load_recipe("", words);
  const auto model = models::find_model(recipe.model);
  const auto backend = backends::open_backend("cpu", {.threads = 2});
  auto spec = plan::training_spec(recipe, model.config, *backend);
  const RunData data = load_data(recipe, model, *backend);
  data.documents.shape_rows(spec);
  const plan::Job job = plan::plan_training(spec, *backend);
  runtime::Executor executor(job, *backend);
  runtime::random_weights(model.config, executor);
  if (spec.is_adapted()) runtime::initialise_adapter(executor);
  executor.run(program::ProgramName::prepare);

  const TrainerOptions options{.total_steps = 8,
                               .update_in_backward = spec.update_in_backward,
                               .schedule = {.learning_rate = 1e-3, .total_steps = 8},
                               .checkpoint = {}};
  BatchLoader loader(data.training->rows, spec.rows, spec.row_tokens, executor);
  const testing::TemporaryFolder folder;
  auto metrics = formats::JsonLines::create(folder / "metrics.jsonl");
  Progress progress(0, 8);
  DocumentSteps steps(loader, {.rows = spec.rows, .accumulation = spec.accumulation});
  Trainer trainer(options, executor, steps, nullptr, &metrics, &progress);
  runtime::TrainerState state;
  const std::atomic<int> no_signal{0};
  const auto step = [&] {
    ASSERT_TRUE(trainer.begin_step(state, no_signal));
    trainer.finish_step(state);
  };
  for (int warm = 0; warm < 2; ++warm) step();
  g_largest = g_growth = g_calls = 0;
  g_watching = true;
  for (int count = 0; count < 3; ++count) step();
  g_watching = false;
  EXPECT_LE(g_largest, 4096);
  EXPECT_EQ(g_growth, 0);
}

TEST(SteadyState, TheWatchSeesAllocations) {
  g_largest = g_growth = 0;
  g_watching = true;
  void* volatile block = std::malloc(5000);
  g_watching = false;
  std::free(block);
  EXPECT_GE(g_largest, 5000);
  EXPECT_GE(g_growth, 5000);
}

TEST(SteadyState, Lora) { expect_steady({"method=lora", "lora_dropout=0.1"}); }
TEST(SteadyState, LoraInFp32) { expect_steady({"method=lora", "compute_dtype=fp32"}); }
TEST(SteadyState, Qlora) {
  expect_steady({"method=qlora", "recompute=layer", "activation_offloading=true"});
}
TEST(SteadyState, FullWithAllOnTheHost) {
  expect_steady({"method=full", "offload_params=true", "offload_optimizer=stream"});
}
TEST(SteadyState, FullWith8bitStateInBackward) {
  expect_steady({"method=full", "optim=adamw_8bit", "optim_in_backward=true", "max_grad_norm=0"});
}
TEST(SteadyState, FullWithAccumulation) {
  expect_steady({"method=full", "gradient_accumulation_steps=2", "recompute=layer"});
}
TEST(SteadyState, FullWithBf16State) {
  if (!backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
    GTEST_SKIP() << "the processor has no bf16 products, which this optimizer needs";
  expect_steady({"method=full", "optim=adamw_bf16"});
}

}  // namespace
}  // namespace snug::train
