#include "plan/time/kernel_instructions.h"

#include <array>
#include <cmath>
#include <string_view>

namespace snug::plan {
namespace {

struct Counted {
  std::string_view kernel;  // as bench/results/kernels.md names it
  double instructions;      // per element
};

constexpr std::array kCounted{
    Counted{"adamw_8bit_kernel", 162.1},
    Counted{"adamw_stochastic_kernel", 115.6},
    Counted{"attention_matrix_kernel<128, false, 0, Bf16>", 23.8},
    Counted{"attention_matrix_kernel<128, true, 0, Bf16>", 37.9},
    Counted{"attention_matrix_kernel<256, false, 0, Bf16>", 41.5},
    Counted{"attention_matrix_kernel<256, true, 0, Bf16>", 55.7},
    Counted{"attention_matrix_kernel<64, false, 0, Bf16>", 18.8},
    Counted{"attention_matrix_kernel<64, true, 0, Bf16>", 32.8},
    Counted{"attention_splits_kernel<1, true, false>", 6.3},
    Counted{"attention_splits_kernel<1, true, true>", 8.6},
    Counted{"attention_splits_kernel<2, true, false>", 10.6},
    Counted{"attention_splits_kernel<2, true, true>", 14.8},
    Counted{"attention_splits_kernel<4, true, false>", 18.7},
    Counted{"attention_splits_kernel<4, true, true>", 27.2},
    Counted{"attention_splits_kernel<8, true, false>", 28.5},
    Counted{"attention_splits_kernel<8, true, true>", 45.4},
    Counted{"key_matrix_kernel<128, false, Bf16>", 42.7},
    Counted{"key_matrix_kernel<128, true, Bf16>", 59.5},
    Counted{"key_matrix_kernel<256, false, Bf16>", 68.8},
    Counted{"key_matrix_kernel<256, true, Bf16>", 89.0},
    Counted{"key_matrix_kernel<64, false, Bf16>", 35.6},
    Counted{"key_matrix_kernel<64, true, Bf16>", 52.6},
    Counted{"query_matrix_kernel<128, false, Bf16>", 29.6},
    Counted{"query_matrix_kernel<128, true, Bf16>", 44.4},
    Counted{"query_matrix_kernel<256, false, Bf16>", 51.0},
    Counted{"query_matrix_kernel<256, true, Bf16>", 66.0},
    Counted{"query_matrix_kernel<64, false, Bf16>", 24.1},
    Counted{"query_matrix_kernel<64, true, Bf16>", 38.9},
    Counted{"value_matrix_kernel<256, false, Bf16>", 55.6},
    Counted{"value_matrix_kernel<256, true, Bf16>", 72.1},
};

// A name that is not in the table does not compile.
consteval double count(std::string_view kernel) {
  for (const Counted& counted : kCounted)
    if (counted.kernel == kernel) return counted.instructions;
  throw "no such kernel";
}

// Counts of the plain form and of the one that adjusts scores.
struct Forms {
  double plain;
  double adjusted;
  double of(bool adjusts) const { return adjusts ? adjusted : plain; }
};

constexpr Forms kForward128{count("attention_matrix_kernel<128, false, 0, Bf16>"),
                            count("attention_matrix_kernel<128, true, 0, Bf16>")};
constexpr Forms kForward64{count("attention_matrix_kernel<64, false, 0, Bf16>"),
                           count("attention_matrix_kernel<64, true, 0, Bf16>")};
// Two kernels go over all pairs: for queries, and for keys and values.
constexpr Forms kGradient128{
    count("query_matrix_kernel<128, false, Bf16>") + count("key_matrix_kernel<128, false, Bf16>"),
    count("query_matrix_kernel<128, true, Bf16>") + count("key_matrix_kernel<128, true, Bf16>")};
constexpr Forms kGradient64{
    count("query_matrix_kernel<64, false, Bf16>") + count("key_matrix_kernel<64, false, Bf16>"),
    count("query_matrix_kernel<64, true, Bf16>") + count("key_matrix_kernel<64, true, Bf16>")};
// Of wide heads keys and values have a kernel each.
constexpr Forms kForward256{count("attention_matrix_kernel<256, false, 0, Bf16>"),
                            count("attention_matrix_kernel<256, true, 0, Bf16>")};
constexpr Forms kGradient256{
    count("query_matrix_kernel<256, false, Bf16>") + count("key_matrix_kernel<256, false, Bf16>") +
        count("value_matrix_kernel<256, false, Bf16>"),
    count("query_matrix_kernel<256, true, Bf16>") + count("key_matrix_kernel<256, true, Bf16>") +
        count("value_matrix_kernel<256, true, Bf16>")};

const Forms& forms_of(const program::AttentionRate& attention) {
  const bool is_gradient = attention.is_gradient;
  if (attention.head_dim > kWideHeads) return is_gradient ? kGradient256 : kForward256;
  if (attention.head_dim > 64) return is_gradient ? kGradient128 : kForward128;
  return is_gradient ? kGradient64 : kForward64;
}

// While decoding a block reads the cache once for up to 8 heads that share it.
constexpr double kMaxSharedHeads = 8;
Forms decoding_forms(double shared_heads) {
  if (shared_heads <= 1)
    return {count("attention_splits_kernel<1, true, false>"),
            count("attention_splits_kernel<1, true, true>")};
  if (shared_heads <= 2)
    return {count("attention_splits_kernel<2, true, false>"),
            count("attention_splits_kernel<2, true, true>")};
  if (shared_heads <= 4)
    return {count("attention_splits_kernel<4, true, false>"),
            count("attention_splits_kernel<4, true, true>")};
  return {count("attention_splits_kernel<8, true, false>"),
          count("attention_splits_kernel<8, true, true>")};
}

double optimizer_instructions(const program::OptimizerRate& optimizer) {
  switch (optimizer.form) {
    case program::OptimizerForm::f32:
      return 0;
    case program::OptimizerForm::stochastic:
      return count("adamw_stochastic_kernel") * optimizer.weights;
    case program::OptimizerForm::coded:
      return count("adamw_8bit_kernel") * optimizer.weights;
  }
  return 0;
}

}  // namespace

double kernel_instructions(const program::RateKey& key) {
  if (key.optimizer) return optimizer_instructions(*key.optimizer);
  if (!key.attention) return 0;
  const program::AttentionRate& attention = *key.attention;
  const double passes = std::ceil(attention.shared_heads / kMaxSharedHeads);
  return passes * attention.cache_numbers *
         decoding_forms(attention.shared_heads).of(key.form.adjusted);
}

AttentionLoops attention_loops(bool is_wide) {
  if (!is_wide)
    return {.forward = kForward128.plain,
            .query = count("query_matrix_kernel<128, false, Bf16>"),
            .key = count("key_matrix_kernel<128, false, Bf16>"),
            .value = 0};
  return {.forward = kForward256.plain,
          .query = count("query_matrix_kernel<256, false, Bf16>"),
          .key = count("key_matrix_kernel<256, false, Bf16>"),
          .value = count("value_matrix_kernel<256, false, Bf16>")};
}

double adjusted_attention_factor(const program::RateKey& key) {
  const bool multiplies_on_tensor_cores = key.form.tensor_cores || key.form.by_library;
  if (!key.attention || !key.form.adjusted || !multiplies_on_tensor_cores) return 1;
  const Forms& forms = forms_of(*key.attention);
  return forms.adjusted / forms.plain;
}

}  // namespace snug::plan
