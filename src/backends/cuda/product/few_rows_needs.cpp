#include "backends/cuda/product/few_rows_needs.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_set>

#include "backends/cuda/attention/kernels/rotation_form.h"
#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/needs/row_stride.h"
#include "backends/cuda/product/kernels/few_rows_ring.h"
#include "backends/cuda/product/matmul_needs.h"
#include "program/ir/operands.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cuda {
namespace {

using program::AddBias;
using program::CacheWrite;
using program::Matmul;
using program::MatmulNf4;
using program::Operation;
using program::OperationView;
using program::ProductAlgorithm;
using program::Program;
using program::RmsNorm;
using program::Rope;
using program::SiluMul;
using program::Tensor;
using program::TensorId;

// Whether kernels can read the tensor's rows as vectors of 16-bit elements, wherever it is in its
// arena.
bool has_vectors(const Tensor& tensor) {
  return is_narrow(tensor.dtype) && tensor.shape.columns() % kVectorElements == 0 &&
         (tensor.shape.rank() < 2 || row_stride(tensor) % kVectorElements == 0) &&
         tensor.view.offset % kVectorElements == 0;
}

// Whether an operand of a single launch can be read as vectors; a single row has no stride.
bool can_read_vectors(const Tensor& tensor) {
  return is_narrow(tensor.dtype) && tensor.shape.columns() % kVectorElements == 0 &&
         (tensor.shape.rows() <= 1 || row_stride(tensor) % kVectorElements == 0) &&
         tensor.view.offset % kVectorElements == 0;
}

// A product that can share a launch.
struct Product {
  TensorId x = program::kNone;
  TensorId y = program::kNone;
  TensorId addend = program::kNone;
  size_t form = 0;  // the form of the weight, which is the same for all products of a launch
};

std::optional<Product> product_of(const OperationView& view) {
  const Operation& operation = view.operation;
  if (const auto* matmul = operation.attributes.get_if<Matmul>()) {
    const bool fits = matmul->choice.main.algorithm == ProductAlgorithm::few_rows_tensor_cores &&
                      has_few_rows(*matmul, view) && !matmul->augmented && !matmul->accumulate &&
                      has_vectors(view[Matmul::kA]) && has_vectors(view[Matmul::kB]);
    if (!fits) return std::nullopt;
    Product product{.x = id_of(operation, Matmul::kA), .y = id_of(operation, Matmul::kC)};
    if (matmul->addend) product.addend = id_of(operation, Matmul::kAddend);
    return product;
  }
  const auto* nf4 = operation.attributes.get_if<MatmulNf4>();
  const bool fits = nf4 != nullptr && nf4->algorithm == ProductAlgorithm::few_rows_tensor_cores &&
                    has_vectors(view[MatmulNf4::kX]);
  if (!fits) return std::nullopt;
  return Product{.x = id_of(operation, MatmulNf4::kX),
                 .y = id_of(operation, MatmulNf4::kY),
                 .addend = nf4->addend ? id_of(operation, MatmulNf4::kAddend) : program::kNone,
                 .form = nf4->nested ? size_t{2} : size_t{1}};
}

// A set of tensors, identified by the owners of their bytes.
class OwnerSet {
 public:
  explicit OwnerSet(const Program& program) : program_(program) {}
  void add(TensorId id) { owners_.insert(program_.owner(id)); }
  bool has(TensorId id) const { return owners_.contains(program_.owner(id)); }

 private:
  const Program& program_;
  std::unordered_set<TensorId> owners_;
};

class Finder {
 public:
  Finder(const Program& program, size_t first)
      : program_(program), next_(first), read_(program), written_(program) {}

  // The number of operations found; 0: no product.
  size_t find() {
    const size_t first = next_;
    take_norm();
    while (count_ < kFewRowsParts && take_product()) {
    }
    if (count_ == 0) return 0;
    take_gate();
    while (take_rotation()) {
    }
    while (take_write()) {
    }
    return next_ - first;
  }

 private:
  bool at_end() const { return next_ >= program_.operations.size(); }
  OperationView view() const { return {program_, program_.operations[next_]}; }

  // All blocks read the norm's input and keep its output, which one of them writes to memory. The
  // launches must be the same for every GPU.
  void take_norm() {
    if (!view().operation.attributes.is<RmsNorm>()) return;
    const Tensor& x = view()[RmsNorm::kX];
    const auto together = {&x, &view()[RmsNorm::kW], &view()[RmsNorm::kY]};
    const bool fits = x.shape.rank() == 2 && x.shape.rows() <= kFewRows &&
                      keeps_few_rows_by_ring(x.shape.rows(), x.shape.columns(), is_before_codes(),
                                             kLeastSharedBytes) &&
                      std::all_of(together.begin(), together.end(),
                                  [](const Tensor* tensor) { return has_vectors(*tensor); });
    const TensorId from = id_of(view().operation, RmsNorm::kX);
    const TensorId to = id_of(view().operation, RmsNorm::kY);
    if (!fits || program_.owner(from) == program_.owner(to)) return;
    x_ = to;
    read_.add(from);
    written_.add(to);
    ++next_;
  }

  // Whether the product after a norm has a weight stored as codes, as then all products of its
  // launch do.
  bool is_before_codes() const {
    return next_ + 1 < program_.operations.size() &&
           program_.operations[next_ + 1].attributes.is<MatmulNf4>();
  }

  bool take_product() {
    if (at_end()) return false;
    const std::optional<Product> product = product_of(view());
    if (!product || (x_ != program::kNone && product->x != x_)) return false;
    if (count_ > 0 && product->form != form_) return false;
    // Its result may overwrite its own addend, but nothing else that is read or written.
    const bool has_addend = product->addend != program::kNone;
    if (read_.has(product->y) || written_.has(product->y) ||
        program_.owner(product->y) == program_.owner(product->x) ||
        (has_addend && written_.has(product->addend)))
      return false;
    x_ = product->x;
    form_ = product->form;
    read_.add(product->x);
    if (has_addend) read_.add(product->addend);
    written_.add(product->y);
    ends_[count_] = product->y;
    products_[count_++] = product->y;
    ++next_;
    take_bias();
    return true;
  }

  // A bias that is added to the outputs of the last product where they lie.
  void take_bias() {
    if (at_end() || !view().operation.attributes.is<AddBias>()) return;
    const Operation& operation = view().operation;
    const TensorId bias = id_of(operation, AddBias::kBias);
    const TensorId y = id_of(operation, AddBias::kY);
    TensorId& product = products_[count_ - 1];
    if (id_of(operation, AddBias::kX) != product || program_.owner(y) != program_.owner(product) ||
        written_.has(bias))
      return;
    product = ends_[count_ - 1] = y;
    read_.add(bias);
    ++next_;
  }

  // It may overwrite what it reads: the thread that computes an element has both inputs.
  void take_gate() {
    if (at_end() || count_ != 2 || !view().operation.attributes.is<SiluMul>()) return;
    const Operation& gate = view().operation;
    const TensorId y = id_of(gate, SiluMul::kY);
    if (id_of(gate, SiluMul::kGate) == products_[0] && id_of(gate, SiluMul::kUp) == products_[1] &&
        !read_.has(y)) {
      ++next_;
      is_gated_ = true;
    }
  }

  // The number of the product whose outputs these are, as they are now; count_ if there is none.
  size_t product_that_makes(TensorId id) const {
    return static_cast<size_t>(std::find(ends_, ends_ + count_, id) - ends_);
  }

  // A rotation of a product's outputs, into memory of its own or where they lie.
  bool take_rotation() {
    if (at_end() || is_gated_) return false;
    const Operation& operation = view().operation;
    const auto* rope = operation.attributes.get_if<Rope>();
    if (rope == nullptr || rope->inverse ||
        !can_rotate_vectors(rope->head_dim, rotated_width(*rope), rope->interleaved))
      return false;
    const TensorId y = id_of(operation, Rope::kY);
    const TensorId table = id_of(operation, Rope::kTable);
    const size_t product = product_that_makes(id_of(operation, Rope::kX));
    if (product == count_ || ends_[product] != products_[product]) return false;
    const bool in_place = program_.owner(y) == program_.owner(products_[product]);
    if (read_.has(y) || (written_.has(y) && !in_place) || written_.has(table) ||
        (table_ != program::kNone && table != table_))
      return false;
    table_ = table;
    ends_[product] = y;
    read_.add(table);
    written_.add(y);
    ++next_;
    return true;
  }

  // A write of a product's outputs, or of what a rotation made of them, to a cache in 16 or 32
  // bits.
  bool take_write() {
    if (at_end() || is_gated_) return false;
    const Operation& operation = view().operation;
    const auto* write = operation.attributes.get_if<CacheWrite>();
    if (write == nullptr || write->quantized) return false;
    const TensorId slots = id_of(operation, CacheWrite::kSlots);
    const size_t product = product_that_makes(id_of(operation, CacheWrite::kX));
    if (product == count_ || is_cached_[product]) return false;
    const int64_t columns = view()[CacheWrite::kX].shape.columns();
    const bool is_rotated = ends_[product] != products_[product];
    if ((!is_rotated && !can_rotate_vectors(columns, columns, false)) ||
        read_.has(id_of(operation, CacheWrite::kCache)) || written_.has(slots) ||
        (slots_ != program::kNone && slots != slots_))
      return false;
    slots_ = slots;
    is_cached_[product] = true;
    ++next_;
    return true;
  }

  const Program& program_;
  size_t next_;
  size_t count_ = 0;  // the number of products so far
  TensorId x_ = program::kNone;
  size_t form_ = 0;
  TensorId products_[kFewRowsParts] = {};
  TensorId ends_[kFewRowsParts] = {};  // what became of each so far
  bool is_cached_[kFewRowsParts] = {};
  bool is_gated_ = false;
  TensorId table_ = program::kNone;
  TensorId slots_ = program::kNone;
  OwnerSet read_;
  OwnerSet written_;
};

// Whether a cache write reads a tensor that exists before the launch, or the full result of one of
// the launch's rotations.
bool may_follow(const Program& program, const Operation& write, size_t first, size_t next) {
  const TensorId x = id_of(write, CacheWrite::kX);
  for (size_t i = first; i < next; ++i) {
    const Operation& before = program.operations[i];
    if (!before.attributes.is<Rope>()) continue;
    const TensorId y = id_of(before, Rope::kY);
    if (y != x && program.owner(y) == program.owner(x)) return false;
  }
  return true;
}

}  // namespace

size_t rotations_together(const Program& program, size_t first) {
  const auto& list = program.operations;
  const auto is = [&]<typename Struct>(size_t i, const Struct&) {
    return i < list.size() && list[i].attributes.is<Struct>();
  };
  const auto rows = [&]<typename Struct>(size_t i, const program::Operand<Struct>& x) {
    return program.tensor(id_of(list[i], x)).shape.rows();
  };
  // What is written in 8 bits has a launch of its own, after the rotation.
  const auto is_write = [&](size_t i) {
    return is(i, CacheWrite{}) && !list[i].attributes.get<CacheWrite>().quantized;
  };
  if (!is(first, Rope{}) && !is_write(first)) return 1;
  const int64_t first_rows =
      is(first, Rope{}) ? rows(first, Rope::kX) : rows(first, CacheWrite::kX);
  size_t next = first;
  size_t parts = 0;
  for (; is(next, Rope{}) && parts < kRotationParts; ++next, ++parts)
    if (list[next].attributes.get<Rope>().inverse || rows(next, Rope::kX) != first_rows ||
        id_of(list[next], Rope::kTable) != id_of(list[first], Rope::kTable))
      return 1;
  const size_t writes = next;
  for (; is_write(next) && parts < kRotationParts; ++next, ++parts) {
    const Operation& write = list[next];
    const bool is_even = program.tensor(id_of(write, CacheWrite::kX)).shape.columns() % 2 == 0;
    if (rows(next, CacheWrite::kX) != first_rows || !is_even ||
        !may_follow(program, write, first, next) ||
        id_of(write, CacheWrite::kSlots) != id_of(list[writes], CacheWrite::kSlots))
      break;
  }
  return next == writes ? 1 : next - first;
}

ProductAlgorithm few_rows_algorithm(const Tensor& x, const Tensor& weight) {
  return can_read_vectors(x) && can_read_vectors(weight) ? ProductAlgorithm::few_rows_tensor_cores
                                                         : ProductAlgorithm::few_rows;
}

ProductAlgorithm few_rows_nf4_algorithm(const Tensor& x, const Tensor& codes) {
  constexpr int64_t kVectorBytes = 16;
  return can_read_vectors(x) && codes.view.offset % kVectorBytes == 0
             ? ProductAlgorithm::few_rows_tensor_cores
             : ProductAlgorithm::few_rows;
}

bool are_few_rows(int64_t rows, ProductAlgorithm algorithm, bool has_codes) {
  if (algorithm != ProductAlgorithm::few_rows_tensor_cores) return rows <= kFewRows;
  return rows <= (has_codes ? kMostFewCodeRows : kMostFewRows);
}

size_t few_rows_together(const Program& program, size_t first) {
  return std::max<size_t>(Finder(program, first).find(), 1);
}

}  // namespace snug::backends::cuda
