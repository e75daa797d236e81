#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "base/error.h"

namespace snug::backends::test {

double relative_error(const Values& result, const Values& oracle) {
  SNUG_CHECK_EQ(result.size(), oracle.size());
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!std::isfinite(oracle[i]) || !std::isfinite(result[i])) {
      const bool same = result[i] == oracle[i] || (std::isnan(result[i]) && std::isnan(oracle[i]));
      if (!same) return kInfinite;
      continue;
    }
    difference += (result[i] - oracle[i]) * (result[i] - oracle[i]);
    norm += oracle[i] * oracle[i];
  }
  if (difference == 0) return 0;
  if (norm == 0) return kInfinite;
  // Smaller numbers have fewer digits in fp32.
  constexpr double kLeast = std::numeric_limits<float>::min();
  return std::sqrt(difference) / std::max(std::sqrt(norm), kLeast);
}

RunResult oracle_of(const OperationCase& operation_case) {
  reference::ReferenceBackend reference({});
  return guarded_run(reference,
                     reference::with_float_type(operation_case.program, program::DType::f64),
                     operation_case.inputs);
}

namespace {

std::string_view isa_limit() {
  const char* isa = std::getenv("SNUG_ISA");
  return isa != nullptr ? isa : "";
}

bool processor_has(std::string_view flag) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string word;
  while (cpuinfo >> word)
    if (word == flag) return true;
  return false;
}

}  // namespace

bool cpu_must_multiply_bf16() {
  const std::string_view limit = isa_limit();
  if (limit == "v2" || limit == "v3" || limit == "v4") return false;
  return processor_has("avx512_bf16") || processor_has("amx_bf16");
}

bool cpu_must_use_tiles() {
  return (isa_limit().empty() || isa_limit() == "amx") && processor_has("amx_bf16");
}

}  // namespace snug::backends::test
