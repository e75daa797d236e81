#include "plan/time/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "plan/time/kernel_instructions.h"

namespace snug::plan {
namespace {

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
// Beyond a factor of eight from every sample nothing was measured.
constexpr double kFar = 3.0;
// Times a launch: what took less says how long launches take, not how fast the work is done.
constexpr double kShort = 4.0;
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
                     .attention_grad_flops_per_second = 0,
                     .wide_attention_flops_per_second = 0,
                     .wide_attention_grad_flops_per_second = 0,
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

// Shares of a peak. Large bf16 products reach what was measured of the class of card, f32 products
// 74 % (public measurements have 0.66 of a 4090 to 0.77 of an H100), streaming kernels 80 % of the
// memory's rate. An operation is started every few microseconds.
Rates Rates::of_data_sheet(const program::DataSheetRates& peaks) {
  constexpr double kF32Products = 0.74;
  constexpr double kMemory = 0.80;
  Rates rates;
  rates.basis_ = Basis::data_sheet;
  rates.has_link_ = true;
  rates.roofline_ = {.flops_per_second = peaks.product_share * peaks.bf16_flops_per_second,
                     .f32_flops_per_second = kF32Products * peaks.f32_flops_per_second,
                     .bytes_per_second = kMemory * peaks.bytes_per_second,
                     .instructions_per_second = 0,
                     .launch_seconds = 5e-6,
                     .attention_flops_per_second = 0,
                     .attention_grad_flops_per_second = 0,
                     .wide_attention_flops_per_second = 0,
                     .wide_attention_grad_flops_per_second = 0,
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
    is_interconnect_measured_ = true;
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
  const RatePoint& point = found->second.front();
  roofline_.rank_memory_bytes_per_second = point.work / point.seconds;
}

Basis Rates::storage_basis() const { return samples_.contains(kStorage) ? basis_ : Basis::assumed; }

double Rates::seconds(const program::OperationView& view,
                      const program::BatchBounds& bounds) const {
  return estimate(view, bounds).seconds;
}

double Rates::seconds(const RateKey& key, const program::Cost& cost) const {
  return estimate(key, cost).seconds;
}

Estimate Rates::estimate(const program::OperationView& view,
                         const program::BatchBounds& bounds) const {
  Estimate sum;
  for (const program::PricedShare& share : program::priced_shares(view, bounds))
    sum += estimate(share.key, share.cost);
  return sum;
}

Estimate Rates::estimate(const RateKey& key, const program::Cost& cost) const {
  const bool computes = key.unit == Work::flops || key.unit == Work::bytes;
  return undisturbed(key, cost) * (computes ? roofline_.sharing.threads_per_processor : 1);
}

Estimate Rates::at_rate(double seconds, bool is_measured) {
  return is_measured ? Estimate::by_sample(seconds) : Estimate::unsampled(seconds);
}

Estimate Rates::join() const {
  return at_rate(roofline_.join_seconds, samples_.contains(kHostJoin));
}

bool Rates::is_link_measured() const {
  return samples_.contains(kLinkToDevice) || samples_.contains(kLinkToHost);
}

Estimate Rates::undisturbed(const RateKey& key, const program::Cost& cost) const {
  if (key.form.between_hosts && has_link_) return assumed(1).bound(key, cost);
  const program::RateForm form = between_devices(key.form);
  const Estimate over_link =
      at_rate(cost.link_bytes / roofline_.host_bytes_per_second, is_link_measured());
  if (const auto* own = find_samples(form, key))
    return longer(estimate_by(*own, key, cost), over_link);
  const auto of_other = [](const Estimate& estimate) {
    return Estimate{estimate.seconds, estimate.seconds - estimate.unsampled_seconds,
                    estimate.unsampled_seconds};
  };
  if (const auto* main = find_samples(without_decisions(form), key))
    return longer(of_other(estimate_by(*main, key, cost)), over_link);
  if (const auto* simple = find_samples(plain(form), key)) {
    Estimate estimate = estimate_by(*simple, key, cost) * adjusted_attention_factor(key);
    estimate.seconds += cost.serial_bytes / roofline_.bytes_per_second;  // copies
    return longer(longer(of_other(estimate), over_link),
                  Estimate::unsampled(instruction_seconds(key)));
  }
  return longer(bound(key, cost), over_link);
}

const std::vector<RatePoint>* Rates::find_samples(const program::RateForm& form,
                                                  const RateKey& key) const {
  if (samples_.empty()) return nullptr;
  auto found = samples_.find(form.name());
  if (found == samples_.end() && has_link_) found = samples_.find(with_bf16_for_f16(form).name());
  if (found == samples_.end()) return nullptr;
  const size_t sizes = found->second.front().position.size();
  if (sizes != key.shape.size())
    base::throw_user_error(
        "the calibration's samples of \"{}\" have {} sizes, and {} are asked for; make the file "
        "again with 'snug bench calibrate'",
        found->first, sizes, key.shape.size());
  return &found->second;
}

// Samples are of operations that were launched one by one. No launch goes without moving bytes.
// What ranks do together and copies have no launch to save.
Estimate Rates::estimate_by(const std::vector<RatePoint>& points, const RateKey& key,
                            const program::Cost& cost) const {
  const Estimate alone = sampled(points, key, cost);
  if (key.unit != Work::flops && key.unit != Work::bytes) return alone;
  const double saved = (1 - std::min(1.0, cost.launches)) * roofline_.launch_seconds;
  const double seconds = std::max(alone.seconds - saved,
                                  std::min(alone.seconds, cost.bytes / roofline_.bytes_per_second));
  return alone.unsampled_seconds > 0 ? Estimate::unsampled(seconds) : Estimate::by_sample(seconds);
}

Estimate Rates::sampled(const std::vector<RatePoint>& points, const RateKey& key,
                        const program::Cost& cost) const {
  const std::vector<double> at = logarithms(key.shape);
  if (const RatePoint* same = find_same_shape(points, at))
    return Estimate::by_sample(
        key.work > 0 && same->work > 0 ? same->seconds * key.work / same->work : same->seconds);
  const InterpolatedRate interpolated = interpolate(points, at);
  const double rate = std::exp2(interpolated.log_rate);
  if (interpolated.nearest_distance <= kFar) return Estimate::by_sample(key.work / rate);
  // Of operations that took little more than a launch nothing follows for larger ones.
  const bool are_launches = std::ranges::all_of(points, [&](const RatePoint& point) {
    return point.seconds < kShort * roofline_.launch_seconds && point.work < key.work;
  });
  if (are_launches) return bound(key, cost);
  return Estimate::unsampled(std::max(key.work / rate, cost.bytes / roofline_.bytes_per_second) +
                             roofline_.launch_seconds);
}

bool Rates::is_fast(base::DType type) const {
  return type == base::DType::bf16 || (has_link_ && type == base::DType::f16);
}

std::optional<Estimate> Rates::moved(const RateKey& key, const program::Cost& cost) const {
  const auto at = [&](double bytes_per_second, double start_seconds, bool is_measured) {
    return at_rate(cost.bytes / bytes_per_second + start_seconds, is_measured);
  };
  // What is rounded before it is sent, and added up when it has come, is launched in between.
  const double between_ranks =
      key.messages * roofline_.message_seconds + cost.launches * roofline_.launch_seconds;
  switch (key.unit) {
    case Work::link_bytes:
      return at(roofline_.host_bytes_per_second, roofline_.launch_seconds, is_link_measured());
    case Work::host_bytes:
      return at(roofline_.host_memory_bytes_per_second, roofline_.launch_seconds,
                is_host_measured_);
    case Work::storage_bytes:
      return at(roofline_.storage_bytes_per_second, 0, samples_.contains(kStorage));
    case Work::interconnect_bytes:
      return at(roofline_.interconnect_bytes_per_second, between_ranks, is_interconnect_measured_);
    case Work::network_bytes:
      return at(roofline_.network_bytes_per_second, between_ranks, false);
    default:
      return std::nullopt;
  }
}

Estimate Rates::bound(const RateKey& key, const program::Cost& cost) const {
  if (const std::optional<Estimate> by_machine = moved(key, cost)) return *by_machine;
  const bool fast = is_fast(key.multiplies);
  double rate = fast ? roofline_.flops_per_second : roofline_.f32_flops_per_second;
  if (key.attention && fast && roofline_.attention_flops_per_second > 0)
    rate = attention_flops_per_second(key);
  const double work = key.unit == Work::flops ? cost.flops / rate : 0.0;
  const double memory = (cost.bytes - cost.serial_bytes) / roofline_.bytes_per_second;
  return Estimate::unsampled(std::max({work, memory, instruction_seconds(key)}) +
                             cost.serial_bytes / roofline_.bytes_per_second +
                             cost.launches * roofline_.launch_seconds);
}

}  // namespace snug::plan
