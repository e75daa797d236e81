#include "bench/machine_rates.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/median.h"
#include "base/seconds_since.h"
#include "base/temporary_file.h"
#include "bench/memory_update.h"

namespace snug::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using program::Space;

constexpr int kRuns = 5;
constexpr int64_t kFileBytes = int64_t{256} << 20;
constexpr int64_t kReadBytes = int64_t{1} << 20;
constexpr int64_t kReaders = 2;
constexpr int64_t kLinkBytes = int64_t{128} << 20;
constexpr int64_t kJoinBytes = 4;
// So many elements that their weights, gradients and state do not fit in a last-level cache.
constexpr int64_t kUpdatedElements = int64_t{32} << 20;

double median_seconds(const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = Clock::now();
    run();
    seconds.push_back(base::seconds_since(start));
  }
  return base::median(std::move(seconds));
}

plan::RateSample sample_of(std::string_view name, plan::Work unit, double bytes, double seconds) {
  return {
      .name = std::string(name), .shape = {bytes}, .unit = unit, .work = bytes, .seconds = seconds};
}

// A file that is removed with the object.
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
  // The words vary, since some storage compresses data.
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
  // The copy is so small that its time is the time to wait for the device.
  const auto join = [&] { backend.copy(host->data(), device->data(), kJoinBytes); };
  join();
  samples.push_back(
      sample_of(plan::kHostJoin, plan::Work::link_bytes, double{kJoinBytes}, median_seconds(join)));
}

// Measures an update of weights on the host, as the backend runs it for a device.
plan::RateSample host_memory(int threads) {
  const auto host = backends::open_backend(formats::BackendName::cpu, {.threads = threads});
  MemoryUpdate update(*host, kUpdatedElements);
  update.run();
  const double seconds = median_seconds([&] { update.run(); });
  return sample_of(plan::kHostMemory, plan::Work::host_bytes, update.bytes(), seconds);
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
