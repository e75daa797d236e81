// Operations as text, their rate keys, and what rates make of them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "plan/time/rates.h"
#include "program/text/text.h"

namespace snug::plan {

using program::OperationView;
using program::parse_text;
using program::Program;

inline RateKey key_of(const std::string& text, const program::BatchBounds& bounds = {}) {
  const Program program = parse_text("program rates\n" + text);
  return rate_key({program, program.operations.at(0)}, bounds);
}

inline std::string product(int m, int n, int k) {
  return fmt::format(
      "tensor x ({}, {}) bf16\ntensor w ({}, {}) bf16\n"
      "y ({}, {}) bf16 = matmul(x, w) {{transpose_b}}",
      m, k, n, k, m, n);
}

inline double seconds_of(const Rates& rates, const std::string& text,
                         const program::BatchBounds& bounds = {}) {
  const Program program = parse_text("program rates\n" + text);
  return rates.seconds(OperationView{program, program.operations.at(0)}, bounds);
}

inline RateSample sample_of(const std::string& text, double rate) {
  const RateKey key = key_of(text);
  return {key.form.name(), key.shape, key.unit, key.work, key.work / rate, key.multiplies};
}

// 16,384 tokens of 32 heads of head_dim on 8 of keys.
inline std::string attention(int head_dim, const char* more) {
  return fmt::format(
      "tensor q (16384, {0}) bf16\ntensor k (16384, {1}) bf16\ntensor v (16384, {1}) bf16\n"
      "tensor b (2, 2) i32\no (16384, {0}) bf16, lse (32, 16384) f32 = attention(q, k, v, b, b) "
      "{{heads 32, kv_heads 8, head_dim {2}, causal{3}}}",
      32 * head_dim, 8 * head_dim, head_dim, more);
}

inline std::string attention_grad(int head_dim, const char* more) {
  return fmt::format(
      "tensor q (16384, {0}) bf16\ntensor k (16384, {1}) bf16\ntensor v (16384, {1}) bf16\n"
      "tensor do (16384, {0}) bf16\ntensor o (16384, {0}) bf16\ntensor lse (32, 16384) f32\n"
      "tensor b (2, 2) i32\n"
      "dq (16384, {0}) bf16, dk (16384, {1}) bf16, dv (16384, {1}) bf16 = "
      "attention_grad(do, q, k, v, o, lse, b, b) {{heads 32, kv_heads 8, head_dim {2}, causal{3}}}",
      32 * head_dim, 8 * head_dim, head_dim, more);
}

// An H200's.
inline constexpr program::DataSheetRates kPeaks{.bf16_flops_per_second = 989e12,
                                                .f32_flops_per_second = 67e12,
                                                .bytes_per_second = 4.8e12,
                                                .host_bytes_per_second = 64e9};

// TFLOP/s of an operation without its launch.
inline double planned_rate(const std::string& text, double segment_tokens) {
  const Rates rates = Rates::of_data_sheet(kPeaks);
  const program::ExpectedBounds expected{.mean_segment_tokens = segment_tokens};
  const double seconds = seconds_of(rates, text, expected) - rates.roofline().launch_seconds;
  return key_of(text, expected).work / seconds * 1e-12;
}

}  // namespace snug::plan
