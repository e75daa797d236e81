#include "bench/job_products.h"

#include <algorithm>

#include "program/ir/program.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/matmul.h"

namespace snug::bench {
namespace {

using backends::cpu::MatmulSpec;
using base::DType;
using program::OperationView;
using program::Tensor;

struct Factor {
  DType type = DType::f32;
  bool transposed = false;
};

// c (m, n) from factors in the order in which they are stored, rows without gaps.
MatmulSpec dense(int64_t m, int64_t n, int64_t k, Factor a, Factor b, DType c) {
  MatmulSpec spec{.m = m, .n = n, .k = k, .a_type = a.type, .b_type = b.type, .c_type = c};
  spec.a_strides[0] = a.transposed ? 1 : k;
  spec.a_strides[1] = a.transposed ? m : 1;
  spec.b_strides[0] = b.transposed ? 1 : n;
  spec.b_strides[1] = b.transposed ? k : 1;
  spec.c_stride = n;
  return spec;
}

class Collector {
 public:
  explicit Collector(int64_t rank) : rank_(rank) {}
  void add(const OperationView& view, int64_t count) {
    count_ = count;
    if (const auto* matmul = view.operation.attributes.get_if<program::Matmul>())
      add_matmul(*matmul, view);
    if (const auto* loss = view.operation.attributes.get_if<program::LinearCrossEntropyTrain>())
      add_loss(*loss, view);
  }
  std::vector<JobProduct> take() { return std::move(products_); }

 private:
  void add(const MatmulSpec& spec, int64_t count) {
    for (JobProduct& product : products_) {
      if (product.spec != spec) continue;
      product.count += count;
      return;
    }
    products_.push_back({spec, count, std::min({spec.m, spec.n, spec.k}) <= rank_});
  }

  void add_matmul(const program::Matmul& matmul, const OperationView& view) {
    const Tensor& a = view[program::Matmul::kA];
    const Tensor& b = view[program::Matmul::kB];
    const Tensor& c = view[program::Matmul::kC];
    const int64_t k = a.shape[matmul.transpose_a ? 0 : 1];
    MatmulSpec spec = dense(c.shape[0], c.shape[1], k, {a.dtype, matmul.transpose_a},
                            {b.dtype, matmul.transpose_b}, c.dtype);
    spec.alpha = matmul.alpha;
    add(spec, count_);
    if (matmul.augmented) add_low_rank(matmul, view, c);
  }

  // A library would compute it in a separate call.
  void add_low_rank(const program::Matmul& matmul, const OperationView& view, const Tensor& c) {
    const Tensor& a = view[program::Matmul::kLowA];
    MatmulSpec spec = dense(c.shape[0], c.shape[1], a.shape[1], {a.dtype, false},
                            {a.dtype, matmul.low_transpose_b}, c.dtype);
    spec.alpha = matmul.low_alpha;
    add(spec, count_);
  }

  void add_loss(const program::LinearCrossEntropyTrain& loss, const OperationView& view) {
    using Loss = program::LinearCrossEntropyTrain;
    const int64_t tokens = view[Loss::kHidden].shape[0];
    const int64_t width = view[Loss::kHidden].shape[1];
    const int64_t vocab = view[Loss::kWeight].shape[0];
    const DType type = view[Loss::kHidden].dtype;
    const int64_t rows = loss.chunks.rows > 0 ? std::min(loss.chunks.rows, tokens) : tokens;
    const int64_t chunks = (tokens + rows - 1) / rows;
    add(dense(rows, vocab, width, {type, false}, {type, true}, DType::f32), count_ * chunks);
    add(dense(rows, width, vocab, {type, false}, {type, false}, type), count_ * chunks);
    if (loss.weight_gradient)
      add(dense(vocab, width, rows, {type, true}, {type, false}, DType::f32), count_ * chunks);
  }

  const int64_t rank_;
  std::vector<JobProduct> products_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<JobProduct> job_products(const plan::Job& job, const plan::TrainingSpec& spec) {
  Collector collector(spec.is_adapted() ? spec.lora.r : 0);
  for (const plan::StepProgram& step : plan::step_programs(job, spec.accumulation))
    for (const program::Operation& operation : step.program->operations)
      collector.add({*step.program, operation}, step.runs);
  return collector.take();
}

}  // namespace snug::bench
