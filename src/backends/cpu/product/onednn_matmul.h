// Matrix products through oneDNN, version 2 or 3; no other files include oneDNN.
//
// A primitive belongs to a MatmulSpec and a number of OpenMP threads. All operations of that shape
// share it on the thread that asked for it: no other thread may create or execute it, and it lives
// as long as that thread. Its machine code takes 0.1 to 0.7 ms to generate and is outside the
// arena. Executing uses the caller's scratch and allocates only small argument lists inside oneDNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cpu/isa.h"
#include "base/dtype.h"

namespace snug::backends::cpu {

// A low-rank product that is added to another one: alpha * a (m, k) b (k, n), in the types of the
// first, with contiguous rows of a. Only wide products can include one (wide_product.h).
struct LowRankSpec {
  int64_t k = 0;  // 0 if there is no such product
  int64_t a_stride = 0;
  int64_t b_strides[2] = {0, 1};
  float alpha = 1.0F;
  bool operator==(const LowRankSpec&) const = default;
};

// c (m, n) = alpha * a (m, k) b (k, n) [+ addend (m, n)], or [+ c]. Strides count elements: the
// first is that between rows, so a transposed operand has strides (1, ld). Rows of c and the addend
// are contiguous.
struct MatmulSpec {
  enum class Add : uint8_t { nothing, addend, destination };
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  base::DType a_type = base::DType::f32;
  base::DType b_type = base::DType::f32;
  base::DType c_type = base::DType::f32;
  base::DType addend_type = base::DType::f32;
  int64_t a_strides[2] = {0, 1};
  int64_t b_strides[2] = {0, 1};
  int64_t c_stride = 0;
  int64_t addend_stride = 0;
  float alpha = 1.0F;
  Add add = Add::nothing;
  LowRankSpec low = {};
  // How much of k is summed before c is read and written again (product.h). 0: all.
  int64_t step = 0;
  bool operator==(const MatmulSpec&) const = default;
};

// The step that a trace records for a product that summed at most `most` elements of k at once. If
// all of k was summed at once, this is the requested step, or 0 if the requested step was shorter
// than k.
constexpr int64_t ran_step(const MatmulSpec& spec, int64_t most) {
  if (most < spec.k) return most;
  return spec.k <= spec.step ? spec.step : 0;
}

// The addresses for one product. The addend must not overlap c: for that there is Add::destination.
struct MatmulOperands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::byte* c = nullptr;
  const std::byte* addend = nullptr;
  const std::byte* low_a = nullptr;
  const std::byte* low_b = nullptr;
};

class MatmulPrimitive;

// Finds the primitive, or describes it for the current number of OpenMP threads, which determines
// its scratch. The result lives as long as the thread.
MatmulPrimitive& matmul_primitive(const MatmulSpec& spec);
// Generates the primitive's machine code, once. Required before execute().
void create(MatmulPrimitive& primitive);

int64_t scratch_bytes(const MatmulPrimitive& primitive);
// oneDNN's name for the implementation, such as "brg:avx512_core_bf16".
std::string implementation(const MatmulPrimitive& primitive);
// `scratch` holds at least scratch_bytes, aligned to 64.
void execute(MatmulPrimitive& primitive, const MatmulOperands& operands, std::byte* scratch);

// Limits oneDNN to an instruction set, whatever its own environment variables say; it gets AMX
// tiles only where the processor reports their sizes. Only the first call in a process counts, and
// it must come before the first primitive.
void limit_onednn(Isa isa);
// Whether oneDNN may use AMX tiles in this process.
bool onednn_has_tiles();
// For example "2.6.3".
std::string onednn_version();

}  // namespace snug::backends::cpu
