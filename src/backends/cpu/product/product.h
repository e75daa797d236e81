// A matrix product made ready for the algorithm that the operation states, its scratch known. Used
// by every kind that multiplies matrices.
//
// Bf16 products that are wide in every dimension run on AMX tiles in kernels of our own, thin ones
// and those of a few rows with a transposed factor too. From x86-64-v4 on oneDNN runs the others,
// in a form that takes all scratch from the caller; it has that form only for matrices without gaps
// between rows (or columns, transposed), so those with gaps are copied through the workspace, as
// the operation says. Below v4 all others run in our own gemm, in fp32, and everywhere those of
// fp16 factors do, which it widens as it packs them.
//
// Sums over a long inner dimension may be made in steps of it (MatmulSpec::step): the first does
// what the product asks for, later ones read the sums in c, which are fp32, and write them again.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "program/ir/tensor.h"
#include "program/kinds/product/product_choice.h"

namespace snug::backends::cpu {

// Whether a product of these types runs on this machine: fp32 and fp16 anywhere, bf16 factors where
// the processor multiplies them (elsewhere a job computes in fp32; nothing is emulated in silence).
bool supports_product(base::DType a, base::DType b, base::DType c, const CpuContext& context);

// Whether one call makes this product and the low-rank one that is added to it.
bool takes_low_rank(const MatmulSpec& spec, const CpuContext& context);

using program::ProductAlgorithm;

// The fastest for a product of supported types: what lowering writes into an operation. Depends on
// the shape, the types and the instruction set alone. Few rows with a transposed factor have a
// kernel of their own, and so have thin and wide products on tiles and all others below x86-64-v4
// (blocked); oneDNN (library) makes the rest.
ProductAlgorithm algorithm_of(const MatmulSpec& spec, const CpuContext& context);

// What computes a product of any shape of factors of this type: the library, or where it does not
// run the own kernel that works in tiles.
ProductAlgorithm algorithm_of_any(base::DType type, const CpuContext& context);

// The step of its inner dimension with which the algorithm is fastest, 0 where that is all of it:
// what lowering writes into an operation.
int64_t step_of(const MatmulSpec& spec, ProductAlgorithm algorithm);

using ProductCopies = program::DenseOperands;

// The copies that the algorithm needs: what lowering writes into an operation.
ProductCopies copies_of(const MatmulSpec& spec, ProductAlgorithm algorithm);

// What computed a product, in what steps, and what of it was copied.
struct RanProduct {
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  int64_t step = 0;
  ProductCopies copies = {};
};

// Whether the algorithm computes this product on this machine.
bool runs_product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context);

class Product {
 public:
  // Fails a CHECK where the algorithm does not compute this product.
  Product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context);
  const MatmulSpec& spec() const { return spec_; }
  ProductCopies copies() const { return copies_of(spec_, algorithm_); }
  int64_t scratch_bytes() const;
  // Makes what multiply() needs; equal products share it.
  void create() const;
  // The addend shares no bytes with c: that is Add::destination. Scratch is aligned to 64 bytes.
  // Returns what computed it, for traces.
  RanProduct multiply(const MatmulOperands& operands, std::byte* scratch,
                      CpuContext& context) const;

 private:
  // The matrices that are copied to be without gaps.
  enum Matrix : uint8_t { kA, kB, kC, kAddend, kMatrices };

  RanProduct multiply_by_library(const MatmulOperands& operands, std::byte* scratch) const;
  void close_gaps();
  void make_steps();
  // Adds to `copies` what it copies.
  MatmulOperands copy_in(const MatmulOperands& operands, std::byte* scratch,
                         ProductCopies& copies) const;
  std::byte* copy_factor(const std::byte* from, Matrix matrix, std::byte* to) const;

  MatmulSpec spec_;
  ProductAlgorithm algorithm_ = ProductAlgorithm::library;
  MatmulSpec dense_;                               // what the library is asked for
  std::array<int64_t, kMatrices> copied_bytes_{};  // 0: used where it lies
  // A step of the inner dimension; the first does what the product asks for, later ones add to c.
  struct Step {
    int64_t begin;
    MatmulPrimitive* primitive;
  };
  std::vector<Step> steps_;  // of the library
  int64_t own_scratch_bytes_ = 0;
};

// A matrix operand: (rows, columns), columns of stride 1.
struct MatrixLayout {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  base::DType dtype = base::DType::f32;
};

// The layout of a tensor of rank 1 (one row) or 2, view or not.
MatrixLayout matrix_layout(const program::Tensor& tensor);

}  // namespace snug::backends::cpu
