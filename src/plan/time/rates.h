// How long a machine takes for an operation, from samples measured on it or, where there are none,
// from an assumed row for this class of processors. Nothing here knows a recipe: samples are of
// operations, by kind and shape.
//
// Collectives of the hosts next to devices (RateForm::between_hosts) have the assumed rates.
//
// Immutable once made; may be shared between threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/time/basis.h"
#include "plan/time/estimate.h"
#include "plan/time/processor_sharing.h"
#include "plan/time/rate_interpolation.h"
#include "program/kinds/kind.h"
#include "program/work/device_facts.h"
#include "program/work/rate_key.h"

namespace snug::plan {

using program::line_of;
using program::rate_key;
using program::RateKey;
using program::Work;

// One measured operation: `seconds` include what starting it costs.
struct RateSample {
  std::string name;           // of its RateKey's form
  std::vector<double> shape;  // of its RateKey
  Work unit = Work::bytes;
  double work = 0;
  double seconds = 0;
  base::DType multiplies = base::DType::f32;  // of its RateKey
};

// Of a machine as a whole: what bounds operations of which no sample is near.
struct Roofline {
  double flops_per_second = 0;      // of large products in the type that trains
  double f32_flops_per_second = 0;  // of large products in f32
  double bytes_per_second = 0;
  double instructions_per_second = 0;     // of a card's lanes; 0: not counted
  double launch_seconds = 0;              // of an operation that does nothing
  double attention_flops_per_second = 0;  // of own kernels on tensor cores; 0: as products
  double attention_grad_flops_per_second = 0;
  double wide_attention_flops_per_second = 0;  // of heads above 128, in columns as kernels pad them
  double wide_attention_grad_flops_per_second = 0;
  // The peak for shares of a library's attention (library_attention.h); 0: as own kernels.
  double library_attention_peak = 0;
  double host_bytes_per_second = 0;         // of copies between spaces
  double host_memory_bytes_per_second = 0;  // of the host's processor next to a device
  double storage_bytes_per_second = 0;      // of files
  // The delay between the end of work on a device with memory of its own and the host's next step,
  // and the other way round. 0: the host's memory is the device's.
  double join_seconds = 0;
  // The rates at which a rank sends to others of its machine, and to other machines; the time that
  // each message adds.
  double interconnect_bytes_per_second = 0;
  double network_bytes_per_second = 0;
  double message_seconds = 0;
  // For ranks that compute on the host's processors. The rate of memory is what each rank reaches
  // while all of them use it; 0: the same as alone.
  ProcessorSharing sharing = {};
  double rank_memory_bytes_per_second = 0;
};

// Of files where none was measured: drives of servers read 2 to 7 GB/s, network volumes of clouds
// 0.2 to 1, what the system has cached comes at more than either.
inline constexpr double kAssumedStorageBytesPerSecond = 1e9;

// Names of samples that are of the machine and not of operations (bench/machine_rates.h).
inline constexpr std::string_view kLinkToDevice = "link to device";
inline constexpr std::string_view kLinkToHost = "link to host";
inline constexpr std::string_view kHostMemory = "host memory";
inline constexpr std::string_view kHostJoin = "join with host";
inline constexpr std::string_view kStorage = "storage";
// "memory of 2 ranks": of what a rank moves of its memory while all ranks of the machine do
// (bench/link_rates.h).
inline constexpr std::string_view kRankMemory = "memory of ";
std::string rank_memory_name(int64_t ranks);

class Rates {
 public:
  // A row for server processors with AVX-512 BF16 or AMX, by number of threads (0: one a core).
  static Rates assumed(int threads);
  // Rates of a card for which its maker states these peaks, times the shares that they have with
  // them or that are in rates.cpp. Never a measurement.
  static Rates of_data_sheet(const program::DataSheetRates& peaks);
  // Rates of a machine that was measured. Requires a sample; the roofline is derived from them.
  // Where there is none of the link to a device, copies between spaces take a share of its maker's
  // peak, without a device half the rate of bytes.
  explicit Rates(std::vector<RateSample> samples, const program::DataSheetRates& peaks = {},
                 Basis basis = Basis::calibrated);

  // From here on the rates of one of so many ranks on the machine, all of which copy, update on the
  // host and read files at the same time. Memory of the host that was not measured is assumed to be
  // that of a machine built for so many cards.
  void share_machine(int64_t ranks);

  // From here on the rates of one of so many ranks that compute on the machine's processors and
  // share them like this; memory has the rate that was measured for so many ranks.
  void share_processors(int64_t ranks, const ProcessorSharing& sharing);

  // The sample itself when this very shape was measured. Else the rate (work per second) is
  // interpolated between the nearest samples of the same name. Where none is near: the larger of
  // work / rate and bytes / bandwidth, plus the launch, which counts as no sample. What computes
  // takes longer where ranks share its processors.
  Estimate estimate(const program::OperationView& view, const program::BatchBounds& bounds) const;
  Estimate estimate(const RateKey& key, const program::Cost& cost) const;
  double seconds(const program::OperationView& view, const program::BatchBounds& bounds) const;
  double seconds(const RateKey& key, const program::Cost& cost) const;
  // Of Roofline::join_seconds.
  Estimate join() const;

  Basis basis() const { return basis_; }
  // The basis of the rate of files: basis() where it was measured, else assumed.
  Basis storage_basis() const;
  const Roofline& roofline() const { return roofline_; }

 private:
  Rates() = default;
  void set_kernels(const program::DataSheetRates& peaks);
  void set_links(const std::vector<RateSample>& samples, const program::DataSheetRates& peaks);
  // With processors of its own.
  Estimate undisturbed(const RateKey& key, const program::Cost& cost) const;
  Estimate bound(const RateKey& key, const program::Cost& cost) const;
  // What moves bytes at a rate of the machine; nothing of what computes or reads device memory.
  std::optional<Estimate> moved(const RateKey& key, const program::Cost& cost) const;
  // By a rate of the machine that was measured or not.
  static Estimate at_rate(double seconds, bool is_measured);
  bool is_link_measured() const;
  // Whether products of the type have the rate of the types that train: bf16, on a card f16 too.
  bool is_fast(base::DType type) const;
  double attention_flops_per_second(const RateKey& key) const;
  double instruction_seconds(const RateKey& key) const;
  // The samples of the form, which have as many sizes as the key's shape; nullptr where there are
  // none. On a card what is done in f16 takes the time of bf16, which has the same bytes and the
  // same rate of products: it is what was measured.
  const std::vector<RatePoint>* find_samples(const program::RateForm& form,
                                             const RateKey& key) const;
  // By samples of its name, or of another algorithm's, without a sample where those are too far.
  Estimate estimate_by(const std::vector<RatePoint>& points, const RateKey& key,
                       const program::Cost& cost) const;
  // Of an operation that is launched by itself.
  Estimate sampled(const std::vector<RatePoint>& points, const RateKey& key,
                   const program::Cost& cost) const;

  std::map<std::string, std::vector<RatePoint>, std::less<>> samples_;
  Roofline roofline_;
  bool has_link_ = false;  // between the host's memory and a device's
  bool is_host_measured_ = false;
  bool is_interconnect_measured_ = false;
  Basis basis_ = Basis::assumed;
};

}  // namespace snug::plan
