// Element e of a tensor is word e % 4 of philox({low(e / 4), high(e / 4), 0, 0}, key), where the
// key comes from the seed and the tensor's name; a normal value comes from a pair of words (Box and
// Muller 1958).
#include "runtime/random_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "formats/nf4.h"
#include "models/weights.h"
#include "runtime/load_weights.h"
#include "runtime/read_tensors.h"
#include "runtime/stored_weight.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using base::DType;

constexpr int64_t kGroup = 4;  // elements of one philox call
// A thread is worth starting for this many elements.
constexpr int64_t kThreadElements = int64_t{1} << 18;

using Group = std::array<float, kGroup>;

base::PhiloxKey tensor_key(std::string_view name, int64_t seed) {
  const uint64_t hash = base::hash_name(name.data(), name.size());
  const auto bits = static_cast<uint64_t>(seed);
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0},
                   {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
  return {words[0], words[1]};
}

base::PhiloxCounter words_of(int64_t group, base::PhiloxKey key) {
  const auto index = static_cast<uint64_t>(group);
  return base::philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                      key);
}

Group normal_group(const base::PhiloxCounter& words) {
  Group values{};
  for (size_t pair = 0; pair < kGroup; pair += 2) {
    // In (0, 1], so that the logarithm is finite.
    const float u = base::uniform(words[pair]) + 0x1p-24F;
    const float angle = 2.0F * std::numbers::pi_v<float> * base::uniform(words[pair + 1]);
    const float radius = std::sqrt(-2.0F * std::log(u));
    values[pair] = radius * std::cos(angle);
    values[pair + 1] = radius * std::sin(angle);
  }
  return values;
}

void store(const Buffer& buffer, int64_t element, float value) {
  if (buffer.dtype == DType::f32)
    buffer.as<float>()[element] = value;
  else
    buffer.as<base::BFloat16>()[element] = base::to_bfloat16(value);
}

// Calls fill(first_group, last_group) on so many threads, each with a range of its own.
template <typename F>
void in_parallel(int64_t groups, int threads, const F& fill) {
  const int64_t useful = std::max<int64_t>(1, groups * kGroup / kThreadElements);
  const int64_t count = std::min<int64_t>(threads, useful);
  const auto begin = [&](int64_t part) { return groups * part / count; };
  std::vector<std::thread> others;
  for (int64_t part = 1; part < count; ++part)
    others.emplace_back([&, part] { fill(begin(part), begin(part + 1)); });
  fill(0, begin(1));
  for (std::thread& other : others) other.join();
}

// values(group) gives the values of one group. The buffer holds elements of a tensor from the first
// of a group on.
template <typename F>
void fill_groups(const Buffer& buffer, int64_t first_group, int threads, const F& values) {
  SNUG_CHECK(buffer.dtype == DType::f32 || buffer.dtype == DType::bf16,
             "random values in a tensor of {}", base::name_of(buffer.dtype));
  const int64_t elements = buffer.elements();
  in_parallel((elements + kGroup - 1) / kGroup, threads, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) {
      const Group four = values(first_group + group);
      const int64_t start = group * kGroup;
      for (int64_t i = start; i < std::min(elements, start + kGroup); ++i)
        store(buffer, i, four[static_cast<size_t>(i - start)]);
    }
  });
}

// The same over a whole tensor of the device.
template <typename F>
void fill_tensor(const Buffer& buffer, int threads, Executor& executor, const F& values) {
  write_pieces(buffer, executor, [&](const Buffer& piece, int64_t first) {
    fill_groups(piece, first / kGroup, threads, values);
  });
}

void fill_constant(const Buffer& buffer, float value, Executor& executor) {
  fill_tensor(buffer, 1, executor, [&](int64_t) { return Group{value, value, value, value}; });
}

// Values of a matrix: normal(0, deviation).
struct Normal {
  base::PhiloxKey key;
  float deviation;

  Group operator()(int64_t group) const {
    Group values = normal_group(words_of(group, key));
    for (float& value : values) value *= deviation;
    return values;
  }
};

// Made in a load slot, some rows of blocks at a time, and quantised from there: what the weight
// would be in the compute type, as quantised_from says of files.
void fill_stored(const models::Weight& weight, const Normal& values, int threads,
                 Executor& executor) {
  const StoredWeight stored = stored_weight(executor, weight.name);
  float* const gathered =
      stored.nested() ? executor.tensor("load", "load.absmax.0").as<float>() : nullptr;
  Buffer slot = executor.tensor("load", "load.slot.0");
  slot.dtype = stored.compute;
  HostWindow window(executor, 0);
  const int64_t elements = weight.shape.elements();
  const int64_t most = plan::kLoadSlotBytes / base::size_of(slot.dtype);
  for (int64_t first = 0; first < elements; first += most) {
    slot.shape = {std::min(most, elements - first)};
    fill_groups(slot, first / kGroup, threads, values);
    quantize_values(slot, first, stored, gathered, window);
    window.close();
  }
  store_scales(gathered, elements, stored, window);
}

}  // namespace

void fill_normal(const TensorName& tensor, int64_t seed, float deviation, int threads,
                 Executor& executor) {
  fill_tensor(tensor.buffer, threads, executor, Normal{tensor_key(tensor.name, seed), deviation});
}

void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor) {
  const base::PhiloxKey key = tensor_key(tensor.name, seed);
  fill_tensor(tensor.buffer, 1, executor, [&](int64_t group) {
    const base::PhiloxCounter words = words_of(group, key);
    Group values{};
    for (size_t i = 0; i < kGroup; ++i) values[i] = (2.0F * base::uniform(words[i]) - 1.0F) * bound;
    return values;
  });
}

void random_weights(const models::ModelConfig& config, int64_t seed, int threads,
                    Executor& executor) {
  threads = base::thread_count(threads);
  executor.backend().synchronise();
  for (const models::Weight& weight : models::weights_of(config)) {
    if (is_stored_as_nf4(executor, weight.name)) {
      fill_stored(weight, {tensor_key(weight.name, seed), config.initializer_range}, threads,
                  executor);
      continue;
    }
    const Buffer& buffer = original_of(executor, weight.name);
    if (weight.initializer == models::Initializer::normal)
      fill_normal({buffer, weight.name}, seed, config.initializer_range, threads, executor);
    else
      fill_constant(buffer, weight.initializer == models::Initializer::ones ? 1.0F : 0.0F,
                    executor);
  }
  write_inverse_frequencies(config, executor);
}

}  // namespace snug::runtime
