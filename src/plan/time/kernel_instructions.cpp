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
    Counted{"attention_matrix_kernel<128, false>", 24.6},
    Counted{"attention_matrix_kernel<128, true>", 51.7},
    Counted{"attention_matrix_kernel<64, false>", 18.7},
    Counted{"attention_matrix_kernel<64, true>", 45.7},
    Counted{"attention_splits_kernel<1, true, false>", 6.3},
    Counted{"attention_splits_kernel<1, true, true>", 8.6},
    Counted{"attention_splits_kernel<2, true, false>", 10.6},
    Counted{"attention_splits_kernel<2, true, true>", 14.8},
    Counted{"attention_splits_kernel<4, true, false>", 18.7},
    Counted{"attention_splits_kernel<4, true, true>", 27.2},
    Counted{"attention_splits_kernel<8, true, false>", 28.5},
    Counted{"attention_splits_kernel<8, true, true>", 45.4},
    Counted{"key_matrix_kernel<128, false>", 42.5},
    Counted{"key_matrix_kernel<128, true>", 70.3},
    Counted{"key_matrix_kernel<64, false>", 34.2},
    Counted{"key_matrix_kernel<64, true>", 62.9},
    Counted{"query_matrix_kernel<128, false>", 29.1},
    Counted{"query_matrix_kernel<128, true>", 55.2},
    Counted{"query_matrix_kernel<64, false>", 22.3},
    Counted{"query_matrix_kernel<64, true>", 48.2},
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

constexpr Forms kForward128{count("attention_matrix_kernel<128, false>"),
                            count("attention_matrix_kernel<128, true>")};
constexpr Forms kForward64{count("attention_matrix_kernel<64, false>"),
                           count("attention_matrix_kernel<64, true>")};
// Two kernels go over all pairs: for queries, and for keys and values.
constexpr Forms kGradient128{
    count("query_matrix_kernel<128, false>") + count("key_matrix_kernel<128, false>"),
    count("query_matrix_kernel<128, true>") + count("key_matrix_kernel<128, true>")};
constexpr Forms kGradient64{
    count("query_matrix_kernel<64, false>") + count("key_matrix_kernel<64, false>"),
    count("query_matrix_kernel<64, true>") + count("key_matrix_kernel<64, true>")};

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

double adjusted_attention_factor(const program::RateKey& key) {
  if (!key.attention || !key.form.adjusted || !key.form.tensor_cores) return 1;
  const bool is_wide = key.attention->head_dim > 64;
  const Forms& forms = key.attention->is_gradient ? (is_wide ? kGradient128 : kGradient64)
                                                  : (is_wide ? kForward128 : kForward64);
  return forms.adjusted / forms.plain;
}

}  // namespace snug::plan
