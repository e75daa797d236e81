// Matrix products through oneDNN, version 2 or 3: the only file pair that includes it.
//
// A primitive belongs to a MatmulSpec and a number of OpenMP threads, and is shared by all
// operations of that shape of the thread that asked for it: no other thread may create or execute
// it, and it lasts as long as that thread. Its machine code takes 0.1 to 0.7 ms to make and lies
// outside the arena. Executing uses the caller's scratch and allocates only small argument lists
// inside oneDNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cpu/isa.h"
#include "base/dtype.h"

namespace snug::backends::cpu {

// A second product that is added, of few inner dimensions: alpha * a (m, k) b (k, n), in the types
// of the first, a's columns of stride 1. Only wide products take one (wide_product.h).
struct LowRankSpec {
  int64_t k = 0;  // 0: none
  int64_t a_stride = 0;
  int64_t b_strides[2] = {0, 1};
  float alpha = 1.0F;
  bool operator==(const LowRankSpec&) const = default;
};

// c (m, n) = alpha * a (m, k) b (k, n) [+ addend (m, n)], or [+ c]. Strides count elements, first
// along rows: a transposed operand has strides (1, ld). c and the addend have columns of stride 1.
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

// What a trace calls the step of a product that summed `most` of k at once, or all of it where that
// is less: no step where all would have been more than was asked for.
constexpr int64_t ran_step(const MatmulSpec& spec, int64_t most) {
  if (most < spec.k) return most;
  return spec.k <= spec.step ? spec.step : 0;
}

// What one product works on. The addend may not share bytes with c: that is Add::destination.
struct MatmulOperands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::byte* c = nullptr;
  const std::byte* addend = nullptr;
  const std::byte* low_a = nullptr;
  const std::byte* low_b = nullptr;
};

class MatmulPrimitive;

// Looks the primitive up, or describes it for the current number of OpenMP threads, which settles
// its scratch. Lives as long as the process.
MatmulPrimitive& matmul_primitive(const MatmulSpec& spec);
// Makes its machine code, once. Required before execute().
void create(MatmulPrimitive& primitive);

int64_t scratch_bytes(const MatmulPrimitive& primitive);
// oneDNN's name of the implementation, such as "brg:avx512_core_bf16".
std::string implementation(const MatmulPrimitive& primitive);
// `scratch` holds at least scratch_bytes, aligned to 64.
void execute(MatmulPrimitive& primitive, const MatmulOperands& operands, std::byte* scratch);

// Holds oneDNN to an instruction set, whatever its own environment variables say; tiles only where
// the processor reports them. The first call of a process counts, and it has to come before the
// first primitive.
void limit_onednn(Isa isa);
// Whether oneDNN may use tiles in this process.
bool onednn_has_tiles();
// "2.6.3".
std::string onednn_version();

}  // namespace snug::backends::cpu
