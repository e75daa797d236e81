#include "bench/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/temporary_file.h"
#include "program/builder.h"
#include "program/kinds/functions.h"

namespace snug::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using program::DType;
using program::Space;

constexpr int kRuns = 5;
constexpr int64_t kFileBytes = int64_t{256} << 20;
constexpr int64_t kReadBytes = int64_t{1} << 20;
constexpr int64_t kReaders = 2;
constexpr int64_t kLinkBytes = int64_t{128} << 20;
// Their weights, gradients and state are more than a last-level cache holds.
constexpr int64_t kUpdatedElements = int64_t{32} << 20;

double median_seconds(const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = Clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRuns / 2);
  return seconds[kRuns / 2];
}

plan::RateSample sample_of(std::string_view name, plan::Work unit, double bytes, double seconds) {
  return {
      .name = std::string(name), .shape = {bytes}, .unit = unit, .work = bytes, .seconds = seconds};
}

// A file that goes with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& path)
      : path_(base::temporary_for(path)), file_(base::File::create(path_)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  base::File& file() { return file_; }

 private:
  fs::path path_;
  base::File file_;
};

void read_half(const base::File& file, int64_t reader) {
  std::vector<std::byte> buffer(static_cast<size_t>(kReadBytes));
  constexpr int64_t kPart = kFileBytes / kReaders;
  for (int64_t offset = 0; offset < kPart; offset += kReadBytes)
    file.read_at(reader * kPart + offset, buffer.data(), kReadBytes);
}

plan::RateSample storage_rate(const fs::path& folder) {
  TemporaryFile temporary(folder / "storage-rate");
  base::File& file = temporary.file();
  // Not all alike: some storage compresses.
  std::vector<uint32_t> words(static_cast<size_t>(kReadBytes) / sizeof(uint32_t));
  uint32_t state = 1;
  for (int64_t offset = 0; offset < kFileBytes; offset += kReadBytes) {
    for (uint32_t& word : words) word = state = state * 1664525U + 1013904223U;
    file.write_at(offset, words.data(), kReadBytes);
  }
  file.sync();
  const base::File reading = base::File::open_for_reading(file.path());
  const double seconds = median_seconds([&] {
    reading.drop_cached();
    std::thread other(read_half, std::cref(reading), 1);
    read_half(reading, 0);
    other.join();
  });
  return sample_of(plan::kStorage, plan::Work::storage_bytes, double{kFileBytes}, seconds);
}

void add_link(backends::Backend& backend, std::vector<plan::RateSample>& samples) {
  const auto device = backend.allocate(Space::device, kLinkBytes);
  const auto host = backend.allocate(Space::host, kLinkBytes);
  const auto add = [&](std::string_view name, void* to, const void* from) {
    backend.copy(to, from, kLinkBytes);
    const double seconds = median_seconds([&] { backend.copy(to, from, kLinkBytes); });
    samples.push_back(sample_of(name, plan::Work::link_bytes, double{kLinkBytes}, seconds));
  };
  add(plan::kLinkToDevice, device->data(), host->data());
  add(plan::kLinkToHost, host->data(), device->data());
}

// One AdamW with master weights, by the backend that updates weights next to a device.
plan::RateSample host_memory(int threads) {
  const auto host = backends::open_backend("cpu", {.threads = threads});
  program::Builder builder("host memory");
  const program::Shape shape{kUpdatedElements};
  const auto gradient = builder.activation("gradient", shape, DType::bf16);
  const auto factor = builder.activation("factor", {1}, DType::f32);
  const auto rate = builder.activation("learning_rate", {1}, DType::f32);
  const auto count = builder.activation("step", {1}, DType::i32);
  const auto weight = builder.activation("weight", shape, DType::bf16);
  const auto first = builder.activation("first_moment", shape, DType::f32);
  const auto second = builder.activation("second_moment", shape, DType::f32);
  const auto master = builder.activation("master", shape, DType::f32);
  builder.emit(program::AdamW{.beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F, .has_master = true},
               {gradient, factor, rate, count}, {}, {weight, first, second, master});
  const program::Program program = builder.take();
  const program::Operation& operation = program.operations.front();
  const program::OperationView view{program, operation};

  std::vector<std::unique_ptr<backends::Arena>> memory;
  const auto buffers = [&](const std::vector<program::TensorId>& ids) {
    std::vector<backends::Buffer> made;
    for (const program::TensorId id : ids) {
      const program::Tensor& tensor = program.tensor(id);
      memory.push_back(host->allocate(Space::device, tensor.bytes()));
      made.push_back({memory.back()->data(), tensor.dtype, tensor.shape,
                      program::dense_strides(tensor.shape)});
    }
    return made;
  };
  const std::vector<backends::Buffer> reads = buffers(operation.reads);
  const std::vector<backends::Buffer> updates = buffers(operation.updates);
  const auto prepared = host->prepare(view);
  const backends::Invocation invocation{.attributes = &operation.attributes,
                                        .reads = reads,
                                        .writes = {},
                                        .updates = updates,
                                        .workspace = {},
                                        .prepared = prepared.get()};
  using program::AdamW;
  *invocation[AdamW::kFactor].as<float>() = 1.0F;
  *invocation[AdamW::kLearningRate].as<float>() = 1e-3F;
  *invocation[AdamW::kStep].as<int32_t>() = 1;
  host->run(invocation);
  const double seconds = median_seconds([&] { host->run(invocation); });
  return sample_of(plan::kHostMemory, plan::Work::host_bytes, program::cost(view, {}).bytes,
                   seconds);
}

}  // namespace

std::vector<plan::RateSample> machine_rates(backends::Backend& backend, int threads,
                                            const fs::path& folder) {
  std::vector<plan::RateSample> samples{storage_rate(folder)};
  if (!backend.device()) return samples;
  add_link(backend, samples);
  samples.push_back(host_memory(threads));
  return samples;
}

}  // namespace snug::bench
