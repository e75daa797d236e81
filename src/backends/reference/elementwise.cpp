#include "program/kinds/elementwise/elementwise.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::Add&, const Invocation& invocation) {
  const Floats<T> a(invocation[program::Add::kA]);
  const Floats<T> b(invocation[program::Add::kB]);
  const Floats<T> c(invocation[program::Add::kC]);
  for (int64_t i = 0; i < c.count(); ++i) c.set(i, a[i] + b[i]);
}

template <typename T>
void run(const program::Accumulate& accumulate, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Accumulate::kX]);
  const Floats<T> y(invocation[program::Accumulate::kY]);
  base::PhiloxKey key{};
  if (accumulate.stochastic) {
    const Integers random(invocation[program::Accumulate::kRandom]);
    key = stream_key({accumulate.seed, accumulate.site, random[0], random[1]},
                     RandomPurpose::rounding);
  }
  for (int64_t i = 0; i < y.count(); ++i) {
    const T sum = y[i] + x[i];
    if (accumulate.stochastic)
      y.set_rounded(i, sum, rounding_bits(key, 0, i));
    else
      y.set(i, sum);
  }
}

template <typename T>
void run(const program::AddBias&, const Invocation& invocation) {
  const Floats<T> x(invocation[program::AddBias::kX]);
  const Floats<T> bias(invocation[program::AddBias::kBias]);
  const Floats<T> y(invocation[program::AddBias::kY]);
  for (int64_t t = 0; t < y.rows(); ++t)
    for (int64_t j = 0; j < y.columns(); ++j) y.set(t, j, x.at(t, j) + bias[j]);
}

template <typename T>
void run(const program::SumRows& sum_rows, const Invocation& invocation) {
  const Floats<T> x(invocation[program::SumRows::kX]);
  const Floats<T> y(invocation[program::SumRows::kY]);
  for (int64_t j = 0; j < x.columns(); ++j) {
    T sum = 0;
    for (int64_t t = 0; t < x.rows(); ++t) sum += x.at(t, j);
    y.set(j, sum_rows.accumulate ? y[j] + sum : sum);
  }
}

template <typename T>
void run(const program::Zeros&, const Invocation& invocation) {
  const Floats<T> y(invocation[program::Zeros::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, T{0});
}

template <typename T>
void run(const program::Scale& scale, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Scale::kX]);
  const Floats<T> y(invocation[program::Scale::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i] * static_cast<T>(scale.factor));
}

template <typename T>
void run(const program::Dropout& dropout, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Dropout::kX]);
  const Integers random(invocation[program::Dropout::kRandom]);
  const Floats<T> y(invocation[program::Dropout::kY]);
  const base::PhiloxKey key = dropout_key({dropout.seed, dropout.site, random[0]});
  const uint32_t threshold = dropout_threshold(dropout.probability);
  const T scale = static_cast<T>(dropout_scale(dropout.probability));
  for (int64_t t = 0; t < y.rows(); ++t) {
    const auto row = static_cast<uint32_t>(random[1] + t / dropout.row_length);
    const auto position = static_cast<uint32_t>(t % dropout.row_length);
    for (int64_t j = 0; j < y.columns(); ++j) {
      const bool keep = dropout_word(key, row, position, j) >= threshold;
      y.set(t, j, keep ? x.at(t, j) * scale : T{0});
    }
  }
}

template <typename T>
void run(const program::Cast&, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Cast::kX]);
  const Floats<T> y(invocation[program::Cast::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i]);
}

}  // namespace

SNUG_REFERENCE_KIND(Add);
SNUG_REFERENCE_KIND(Accumulate);
SNUG_REFERENCE_KIND(AddBias);
SNUG_REFERENCE_KIND(SumRows);
SNUG_REFERENCE_KIND(Scale);
SNUG_REFERENCE_KIND(Dropout);
SNUG_REFERENCE_KIND(Cast);
SNUG_REFERENCE_KIND(Zeros);

}  // namespace snug::backends::reference
