// Interpolation: the nearest samples of the same name, in a space of logarithms, weighted by the
// inverse square of their distance, carry a plane through their logarithms of the rate. A plane,
// because rates of small shapes follow powers of them (a product with a LoRA factor of twice the
// rank is twice as fast a FLOP); held flat where the samples do not tell a direction, and within
// the range of the samples it came from. What it does not do: see that two kinds disturb each
// other.
#include "plan/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "plan/kernel_instructions.h"

namespace snug::plan {
namespace {

constexpr size_t kMaxDimensions = 4;
constexpr size_t kNearestPerDimension = 5;
// Of the link between host and device: pinned memory is copied at 55 of PCIe 5's 64 GB/s by public
// measurements.
constexpr double kLink = 0.85;
// Of the host's memory, as its processor reaches it while it updates weights: two channels of DDR5.
constexpr double kAssumedHostMemory = 80e9;
// A server for several cards has more channels: of eight A100, 16 of DDR4 for all.
constexpr double kAssumedHostMemoryPerCard = 40e9;
// Of what a card sends to other machines: seven tenths of a port of 400 Gbit/s each, and of what
// one message between cards takes.
constexpr double kAssumedNetwork = 35e9;
constexpr double kMessage = 4e-6;
// Of an event that the device reaches and a thread of the host waits for, or the other way round:
// two launches.
constexpr double kAssumedJoin = 10e-6;
// Distances count doublings. Samples closer than this are the same shape measured again.
constexpr double kSameShape = 1e-6;
// Beyond a factor of eight from every sample nothing was measured.
constexpr double kFar = 3.0;
// Times a launch: what took less says how long launches take, not how fast the work is done.
constexpr double kShort = 4.0;
// Pulls slopes to zero, in units of the samples' weight: only directions in which samples do not
// differ feel it.
constexpr double kFlattening = 0.02;

using Vector = std::array<double, kMaxDimensions + 1>;
using Matrix = std::array<Vector, kMaxDimensions + 1>;

// Gaussian elimination with pivots; the matrix is symmetric and positive.
Vector solve(Matrix a, Vector b, size_t size) {
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = column + 1; row < size; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (size_t i = column; i < size; ++i) a[row][i] -= factor * a[column][i];
      b[row] -= factor * b[column];
    }
  }
  Vector x{};
  for (size_t row = size; row-- > 0;) {
    double sum = b[row];
    for (size_t i = row + 1; i < size; ++i) sum -= a[row][i] * x[i];
    x[row] = sum / a[row][row];
  }
  return x;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

std::vector<double> logarithms(const std::vector<double>& shape) {
  std::vector<double> result;
  result.reserve(shape.size());
  for (const double size : shape) result.push_back(std::log2(size));
  return result;
}

// The least rate of the samples with these names; nothing where there is none.
std::optional<double> least_rate(const std::vector<RateSample>& samples,
                                 std::initializer_list<std::string_view> names) {
  std::optional<double> least;
  for (const RateSample& sample : samples)
    if (std::ranges::find(names, sample.name) != names.end()) {
      const double rate = sample.work / sample.seconds;
      least = std::min(least.value_or(rate), rate);
    }
  return least;
}

// What a join was measured to take.
std::optional<double> join_seconds(const std::vector<RateSample>& samples) {
  const auto found = std::ranges::find(samples, kHostJoin, &RateSample::name);
  if (found == samples.end()) return std::nullopt;
  return found->seconds;
}

// The name of a sample with bf16 in the place of f16.
std::string with_bf16(std::string_view name) {
  constexpr std::string_view kF16 = " f16";
  std::string result(name);
  for (size_t at = result.find(kF16); at != std::string::npos; at = result.find(kF16, at + 1))
    result.replace(at, kF16.size(), " bf16");
  return result;
}

// Products of large matrices run at this rate; taken from the fastest tenth of the samples, so that
// one lucky measurement does not count.
double upper_rate(std::vector<double> rates, double otherwise) {
  if (rates.empty()) return otherwise;
  const auto at = static_cast<long>(0.9 * static_cast<double>(rates.size() - 1));
  std::nth_element(rates.begin(), rates.begin() + at, rates.end());
  return rates[static_cast<size_t>(at)];
}

}  // namespace

// A thread of a Zen 5 or Sapphire Rapids core reaches about 0.5 TFLOP/s in bf16 products, a fifth
// of it in f32, and moves 8 GB/s of operands that lie outside its second-level cache: it copies
// half as much.
Rates Rates::assumed(int threads) {
  const double cores = base::thread_count(threads);
  Rates rates;
  rates.roofline_ = {.flops_per_second = 0.5e12 * cores,
                     .f32_flops_per_second = 0.1e12 * cores,
                     .bytes_per_second = 8e9 * cores,
                     .instructions_per_second = 0,
                     .launch_seconds = 5e-6,
                     .attention_flops_per_second = 0,
                     .library_attention_peak = 0,
                     .host_bytes_per_second = 4e9 * cores,
                     .host_memory_bytes_per_second = 8e9 * cores,
                     .storage_bytes_per_second = kAssumedStorageBytesPerSecond,
                     .join_seconds = 0,
                     .interconnect_bytes_per_second = 2e9,
                     .network_bytes_per_second = 1e9,
                     .message_seconds = 50e-6};
  return rates;
}

// Shares of a peak. Large bf16 products of a Hopper card sustain 730 of 989 TFLOP/s by public
// measurements, streaming kernels 80 % of the memory's rate; f32 products are taken to do as bf16
// ones. An operation is started every few microseconds.
Rates Rates::of_data_sheet(const program::DataSheetRates& peaks) {
  constexpr double kProducts = 0.74;
  constexpr double kMemory = 0.80;
  Rates rates;
  rates.basis_ = Basis::data_sheet;
  rates.has_link_ = true;
  rates.roofline_ = {.flops_per_second = kProducts * peaks.bf16_flops_per_second,
                     .f32_flops_per_second = kProducts * peaks.f32_flops_per_second,
                     .bytes_per_second = kMemory * peaks.bytes_per_second,
                     .instructions_per_second = 0,
                     .launch_seconds = 5e-6,
                     .attention_flops_per_second = 0,
                     .library_attention_peak = 0,
                     .host_bytes_per_second = kLink * peaks.host_bytes_per_second,
                     .host_memory_bytes_per_second = kAssumedHostMemory,
                     .storage_bytes_per_second = kAssumedStorageBytesPerSecond,
                     .join_seconds = kAssumedJoin,
                     .interconnect_bytes_per_second = peaks.interconnect_bytes_per_second,
                     .network_bytes_per_second = kAssumedNetwork,
                     .message_seconds = kMessage};
  rates.set_kernels(peaks);
  return rates;
}

Rates::Rates(std::vector<RateSample> samples, const program::DataSheetRates& peaks, Basis basis)
    : basis_(basis) {
  SNUG_CHECK(!samples.empty(), "a calibration without samples");
  std::vector<double> flops;
  std::vector<double> f32_flops;
  std::vector<double> bytes;
  std::optional<double> launch;
  const bool is_device = peaks.host_bytes_per_second > 0;
  has_link_ = is_device;
  for (const RateSample& sample : samples) {
    const double rate = sample.work / sample.seconds;
    samples_[sample.name].push_back(
        {logarithms(sample.shape), std::log2(rate), sample.seconds, sample.work});
    // Links, the host and files say nothing of the device's operations.
    if (sample.unit != Work::flops && sample.unit != Work::bytes) continue;
    launch = std::min(launch.value_or(sample.seconds), sample.seconds);
    if (sample.unit == Work::bytes)
      bytes.push_back(rate);
    else if (is_fast(sample.multiplies))
      flops.push_back(rate);
    else
      f32_flops.push_back(rate);
  }
  const Roofline otherwise = assumed(1).roofline_;
  roofline_.f32_flops_per_second = upper_rate(f32_flops, otherwise.f32_flops_per_second);
  roofline_.flops_per_second = upper_rate(flops, roofline_.f32_flops_per_second);
  roofline_.bytes_per_second = upper_rate(bytes, otherwise.bytes_per_second);
  roofline_.launch_seconds = launch.value_or(otherwise.launch_seconds);
  roofline_.host_bytes_per_second = least_rate(samples, {kLinkToDevice, kLinkToHost})
                                        .value_or(is_device ? kLink * peaks.host_bytes_per_second
                                                            : roofline_.bytes_per_second / 2);
  if (is_device) set_kernels(peaks);  // for what was not measured
  const std::optional<double> host_memory = least_rate(samples, {kHostMemory});
  is_host_measured_ = host_memory.has_value();
  roofline_.host_memory_bytes_per_second =
      host_memory.value_or(is_device ? kAssumedHostMemory : roofline_.bytes_per_second);
  roofline_.storage_bytes_per_second =
      least_rate(samples, {kStorage}).value_or(kAssumedStorageBytesPerSecond);
  if (is_device) roofline_.join_seconds = join_seconds(samples).value_or(kAssumedJoin);
  set_links(samples, peaks);
}

// Of what ranks send each other, by the largest messages that were measured; of other numbers of
// ranks than those the rate is the same and the messages are more.
void Rates::set_links(const std::vector<RateSample>& samples,
                      const program::DataSheetRates& peaks) {
  const Roofline otherwise = assumed(1).roofline_;
  const bool is_device = peaks.interconnect_bytes_per_second > 0;
  roofline_.interconnect_bytes_per_second =
      is_device ? peaks.interconnect_bytes_per_second : otherwise.interconnect_bytes_per_second;
  roofline_.network_bytes_per_second =
      is_device ? kAssumedNetwork : otherwise.network_bytes_per_second;
  roofline_.message_seconds = is_device ? kMessage : otherwise.message_seconds;
  double largest = 0;
  for (const RateSample& sample : samples) {
    if (sample.unit != Work::interconnect_bytes || sample.work < largest) continue;
    largest = sample.work;
    roofline_.interconnect_bytes_per_second = sample.work / sample.seconds;
  }
}

// A processor's ranks are measured as they are, since its memory is the device's.
void Rates::share_machine(int64_t ranks) {
  if (ranks <= 1) return;
  const auto count = static_cast<double>(ranks);
  roofline_.storage_bytes_per_second /= count;
  if (!has_link_) return;
  double& memory = roofline_.host_memory_bytes_per_second;
  if (!is_host_measured_) memory = std::max(memory, kAssumedHostMemoryPerCard * count);
  memory /= count;
  roofline_.host_bytes_per_second = std::min(roofline_.host_bytes_per_second, memory);
}

std::string rank_memory_name(int64_t ranks) {
  return fmt::format("{}{} ranks", kRankMemory, ranks);
}

void Rates::share_processors(int64_t ranks, const ProcessorSharing& sharing) {
  if (ranks <= 1) return;
  roofline_.sharing = sharing;
  const auto found = samples_.find(rank_memory_name(ranks));
  if (found == samples_.end()) return;
  const Point& point = found->second.front();
  roofline_.rank_memory_bytes_per_second = point.work / point.seconds;
}

Basis Rates::storage_basis() const { return samples_.contains(kStorage) ? basis_ : Basis::assumed; }

double Rates::seconds(const program::OperationView& view,
                      const program::BatchBounds& bounds) const {
  double sum = 0;
  for (const program::PricedShare& share : program::priced_shares(view, bounds))
    sum += seconds(share.key, share.cost);
  return sum;
}

double Rates::seconds(const RateKey& key, const program::Cost& cost) const {
  const bool computes = key.unit == Work::flops || key.unit == Work::bytes;
  return undisturbed_seconds(key, cost) * (computes ? roofline_.sharing.threads_per_processor : 1);
}

double Rates::undisturbed_seconds(const RateKey& key, const program::Cost& cost) const {
  if (!key.device_name.empty()) {
    if (has_link_) return assumed(1).bound(key, cost);
    RateKey of_device = key;
    of_device.name = std::exchange(of_device.device_name, {});
    return undisturbed_seconds(of_device, cost);
  }
  const double over_link = cost.link_bytes / roofline_.host_bytes_per_second;
  const auto* points = find_samples(key, key.name);
  if (points == nullptr && key.main_name != key.name) points = find_samples(key, key.main_name);
  if (points != nullptr) return std::max(over_link, seconds_by(*points, key, cost));
  const std::string& plain_name = key.attention ? key.attention->plain_name : key.plain_name;
  if (!plain_name.empty())
    if (const auto* plain = find_samples(key, plain_name)) {
      const double factor = key.attention ? adjusted_attention_factor(*key.attention) : 1.0;
      const double copies = cost.serial_bytes / roofline_.bytes_per_second;
      return std::max(
          {over_link, factor * seconds_by(*plain, key, cost) + copies, instruction_seconds(key)});
    }
  return std::max(over_link, bound(key, cost));
}

const std::vector<Rates::Point>* Rates::find_samples(const RateKey& key,
                                                     std::string_view name) const {
  auto found = samples_.find(name);
  if (found == samples_.end() && has_link_) found = samples_.find(with_bf16(name));
  if (found == samples_.end()) return nullptr;
  if (found->second.front().position.size() != key.shape.size())
    base::throw_user_error(
        "the calibration's samples of \"{}\" have {} sizes, and {} are asked for; make the file "
        "again with 'snug bench calibrate'",
        name, found->second.front().position.size(), key.shape.size());
  return &found->second;
}

// Samples are of operations that were launched one by one. No launch goes without moving bytes.
double Rates::seconds_by(const std::vector<Point>& points, const RateKey& key,
                         const program::Cost& cost) const {
  const double alone = sampled_seconds(points, key, cost);
  if (key.unit != Work::flops && key.unit != Work::bytes) return alone;  // nothing is computed
  const double saved = (1 - std::min(1.0, cost.launches)) * roofline_.launch_seconds;
  return std::max(alone - saved, std::min(alone, cost.bytes / roofline_.bytes_per_second));
}

double Rates::sampled_seconds(const std::vector<Point>& points, const RateKey& key,
                              const program::Cost& cost) const {
  const std::vector<double> at = logarithms(key.shape);
  for (const Point& point : points)
    if (distance(point.position, at) < kSameShape)
      return key.work > 0 && point.work > 0 ? point.seconds * key.work / point.work : point.seconds;
  double nearest = 0;
  const double rate = std::exp2(interpolate(points, at, &nearest));
  if (nearest <= kFar) return key.work / rate;
  // Of operations that took little more than a launch nothing follows for larger ones.
  const bool are_launches = std::all_of(points.begin(), points.end(), [&](const Point& point) {
    return point.seconds < kShort * roofline_.launch_seconds && point.work < key.work;
  });
  if (are_launches) return bound(key, cost);
  return std::max(key.work / rate, cost.bytes / roofline_.bytes_per_second) +
         roofline_.launch_seconds;
}

bool Rates::is_fast(base::DType type) const {
  return type == base::DType::bf16 || (has_link_ && type == base::DType::f16);
}

double Rates::bound(const RateKey& key, const program::Cost& cost) const {
  const bool fast = is_fast(key.multiplies);
  double rate = fast ? roofline_.flops_per_second : roofline_.f32_flops_per_second;
  if (key.attention && fast && roofline_.attention_flops_per_second > 0)
    rate = attention_flops_per_second(*key.attention);
  if (key.unit == Work::link_bytes)
    return cost.bytes / roofline_.host_bytes_per_second + roofline_.launch_seconds;
  if (key.unit == Work::host_bytes)
    return cost.bytes / roofline_.host_memory_bytes_per_second + roofline_.launch_seconds;
  if (key.unit == Work::storage_bytes) return cost.bytes / roofline_.storage_bytes_per_second;
  const double launches = cost.launches * roofline_.launch_seconds;
  const double messages = key.messages * roofline_.message_seconds;
  if (key.unit == Work::interconnect_bytes)
    return cost.bytes / roofline_.interconnect_bytes_per_second + messages + launches;
  if (key.unit == Work::network_bytes)
    return cost.bytes / roofline_.network_bytes_per_second + messages + launches;
  const double work = key.unit == Work::flops ? cost.flops / rate : 0.0;
  const double moved = (cost.bytes - cost.serial_bytes) / roofline_.bytes_per_second;
  return std::max({work, moved, instruction_seconds(key)}) +
         cost.serial_bytes / roofline_.bytes_per_second + launches;
}

double Rates::interpolate(const std::vector<Point>& points, const std::vector<double>& at,
                          double* nearest_distance) {
  std::vector<std::pair<double, const Point*>> near;
  near.reserve(points.size());
  for (const Point& point : points) near.emplace_back(distance(point.position, at), &point);
  const size_t count = std::min(near.size(), kNearestPerDimension * at.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<long>(count), near.end());
  near.resize(count);
  *nearest_distance = near.front().first;

  const size_t size = at.size() + 1;
  Matrix normal{};
  Vector right{};
  double total = 0;
  double lowest = std::numeric_limits<double>::max();
  double highest = std::numeric_limits<double>::lowest();
  for (const auto& [away, point] : near) {
    const double weight = 1.0 / (away * away + 0.01);
    Vector row{1.0};
    for (size_t i = 1; i < size; ++i) row[i] = point->position[i - 1] - at[i - 1];
    for (size_t i = 0; i < size; ++i) {
      right[i] += weight * row[i] * point->log_rate;
      for (size_t j = 0; j < size; ++j) normal[i][j] += weight * row[i] * row[j];
    }
    total += weight;
    lowest = std::min(lowest, point->log_rate);
    highest = std::max(highest, point->log_rate);
  }
  for (size_t i = 1; i < size; ++i) normal[i][i] += kFlattening * total;
  return std::clamp(solve(normal, right, size)[0], lowest, highest);
}

}  // namespace snug::plan
