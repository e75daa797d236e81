// delta_gates: what a gated delta rule (gated_delta_rule.h) does with its state at each token: the
// logarithm of the factor by which the state decays, and how much of a value is written.
#pragma once

#include <array>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// reads: a, b (tokens, heads), a_log, dt_bias (heads). writes: g (tokens, heads) f32 =
// -exp(a_log) log(1 + exp(a + dt_bias)), and beta (tokens, heads) f32 = sigmoid(b).
struct DeltaGates {
  bool operator==(const DeltaGates&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kA = read<DeltaGates>(0, "a");
  static constexpr auto kB = read<DeltaGates>(1, "b");
  static constexpr auto kALog = read<DeltaGates>(2, "a_log");
  static constexpr auto kDtBias = read<DeltaGates>(3, "dt_bias");
  static constexpr auto kG = write<DeltaGates>(4, "g");
  static constexpr auto kBeta = write<DeltaGates>(5, "beta");
  static constexpr std::array kOperands{kA, kB, kALog, kDtBias, kG, kBeta};
};

// reads: dg, dbeta, a, b (tokens, heads), a_log, dt_bias (heads). writes: da, db, and if
// `weight_gradient` da_log, ddt_bias (heads).
struct DeltaGatesGrad {
  bool weight_gradient = false;
  bool operator==(const DeltaGatesGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"weight_gradient", &DeltaGatesGrad::weight_gradient}};
  static constexpr auto kDG = read<DeltaGatesGrad>(0, "dg");
  static constexpr auto kDBeta = read<DeltaGatesGrad>(1, "dbeta");
  static constexpr auto kA = read<DeltaGatesGrad>(2, "a");
  static constexpr auto kB = read<DeltaGatesGrad>(3, "b");
  static constexpr auto kALog = read<DeltaGatesGrad>(4, "a_log");
  static constexpr auto kDtBias = read<DeltaGatesGrad>(5, "dt_bias");
  static constexpr auto kDA = write<DeltaGatesGrad>(6, "da");
  static constexpr auto kDB = write<DeltaGatesGrad>(7, "db");
  static constexpr auto kDALog =
      write<DeltaGatesGrad>(8, "da_log", &DeltaGatesGrad::weight_gradient);
  static constexpr auto kDDtBias =
      write<DeltaGatesGrad>(9, "ddt_bias", &DeltaGatesGrad::weight_gradient);
  static constexpr std::array kOperands{kDG,     kDBeta, kA,  kB,     kALog,
                                        kDtBias, kDA,    kDB, kDALog, kDDtBias};
};

}  // namespace snug::program
