// A matrix product prepared for the algorithm that the operation states, with known scratch. Every
// kind that multiplies matrices uses it.
//
// bf16 products that are wide in every dimension run on AMX tiles in Snug's own kernels, as do thin
// ones and those of a few rows with a transposed factor. From x86-64-v4 on, oneDNN runs all others,
// in a form that takes all scratch from the caller. It has that form only for matrices without gaps
// between rows (or columns, if transposed), so matrices with gaps are copied to the workspace, as
// the operation says. Below v4 all other products run in Snug's own gemm, in fp32. Products of fp16
// factors always do; it widens them as it packs them.
//
// Sums over a long inner dimension may be computed in steps (MatmulSpec::step): the first step does
// what the product asks for, later ones add to the sums in c, which are fp32.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "program/ir/tensor.h"
#include "program/kinds/product/product_choice.h"

namespace snug::backends::cpu {

// Whether a product of these types runs on this machine: fp32 and fp16 anywhere, bf16 factors where
// the processor can multiply them (elsewhere a job computes in fp32; nothing is emulated silently).
bool supports_product(base::DType a, base::DType b, base::DType c, const CpuContext& context);

// Whether one call computes this product and the low-rank product that is added to it.
bool takes_low_rank(const MatmulSpec& spec, const CpuContext& context);

using program::ProductAlgorithm;

// The fastest algorithm for a product of supported types, which lowering writes into the operation.
// It depends only on the shape, the types and the instruction set. Few rows with a transposed
// factor have a kernel of their own, as do thin and wide products on AMX tiles, and all others
// below x86-64-v4 (blocked); oneDNN (library) computes the rest.
ProductAlgorithm algorithm_of(const MatmulSpec& spec, const CpuContext& context);

// The algorithm that computes products of any shape with factors of this type: the library or,
// where it is not used, Snug's own tiled kernel.
ProductAlgorithm algorithm_of_any(base::DType type, const CpuContext& context);

// The fastest step of the inner dimension for the algorithm, 0 for all of it; lowering writes it
// into the operation.
int64_t step_of(const MatmulSpec& spec, ProductAlgorithm algorithm);

using ProductCopies = program::DenseOperands;

// The copies that the algorithm needs, which lowering writes into the operation.
ProductCopies copies_of(const MatmulSpec& spec, ProductAlgorithm algorithm);

// The algorithm that computed a product, its step, and which operands were copied.
struct RanProduct {
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  int64_t step = 0;
  ProductCopies copies = {};
};

// Whether the algorithm can compute this product on this machine.
bool runs_product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context);

class Product {
 public:
  // Fails a CHECK where the algorithm cannot compute this product.
  Product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context);
  const MatmulSpec& spec() const { return spec_; }
  ProductCopies copies() const { return copies_of(spec_, algorithm_); }
  int64_t scratch_bytes() const;
  // Creates what multiply() needs; identical products share it.
  void create() const;
  // The addend must not overlap c: for that there is Add::destination. Scratch is aligned to 64
  // bytes. Returns what computed the product, for traces.
  RanProduct multiply(const MatmulOperands& operands, std::byte* scratch,
                      CpuContext& context) const;

 private:
  // The matrices that can be copied to remove gaps.
  enum Matrix : uint8_t { kA, kB, kC, kAddend, kMatrices };

  RanProduct multiply_by_library(const MatmulOperands& operands, std::byte* scratch) const;
  void close_gaps();
  void make_steps();
  // Copies operands and notes in `copies` which ones.
  MatmulOperands copy_in(const MatmulOperands& operands, std::byte* scratch,
                         ProductCopies& copies) const;
  std::byte* copy_factor(const std::byte* from, Matrix matrix, std::byte* to) const;

  MatmulSpec spec_;
  ProductAlgorithm algorithm_ = ProductAlgorithm::library;
  MatmulSpec dense_;                               // the product that the library computes
  std::array<int64_t, kMatrices> copied_bytes_{};  // 0 if the matrix is used in place
  // A step of the inner dimension. The first does what the product asks for; later ones add to c.
  struct Step {
    int64_t begin;
    MatmulPrimitive* primitive;
  };
  std::vector<Step> steps_;  // the steps of the library
  int64_t own_scratch_bytes_ = 0;
};

// A matrix operand: (rows, columns) with contiguous rows.
struct MatrixLayout {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  base::DType dtype = base::DType::f32;
};

// The layout of a tensor of rank 1 (one row) or 2, which may be a view.
MatrixLayout matrix_layout(const program::Tensor& tensor);

}  // namespace snug::backends::cpu
