// The head's loss in chunks of the rows that carry loss. Which rows those are, and how many, only
// the device knows: every chunk that could be needed runs, and rows beyond the last are zero in all
// products.
//
// A chunk: its rows of hidden are gathered; logits = hidden weight^T in f32; softmax turns them in
// place into dlogits (of hidden's type, in the first half of each row's bytes if that is bf16);
// dweight (+)= dlogits^T hidden; dlogits weight takes the place of the chunk's hidden and is
// scattered to dhidden.
#include <algorithm>

#include "backends/cuda/kernels/cross_entropy.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/launch_shape.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/product.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::LinearCrossEntropy;
using program::LinearCrossEntropyTrain;
using program::OperationView;

constexpr int64_t kAlignment = 256;

constexpr int64_t aligned(int64_t bytes) { return ceil_div(bytes, kAlignment) * kAlignment; }

// Either form of the kind.
struct LossForm {
  int64_t chunk_rows = 0;
  bool train = false;
  bool weight_gradient = false;
  bool accumulate = false;
};

LossForm form_of(const LinearCrossEntropy& loss) { return {.chunk_rows = loss.chunk_rows}; }
LossForm form_of(const LinearCrossEntropyTrain& loss) {
  return {loss.chunk_rows, true, loss.weight_gradient, loss.accumulate};
}

// Where things lie in the workspace, in this order.
struct LossLayout {
  int64_t tokens, vocab, width, chunk_rows, hidden_bytes;

  LossLayout(const LossForm& form, const OperationView& view)
      : tokens(view.read(0).shape[0]),
        vocab(view.read(1).shape[0]),
        width(view.read(0).shape[1]),
        chunk_rows(form.chunk_rows > 0 ? std::min(form.chunk_rows, tokens) : tokens),
        hidden_bytes(base::size_of(view.read(0).dtype)) {}

  int64_t numbers() const { return kAlignment; }  // after the count
  int64_t hidden() const { return numbers() + aligned(tokens * int64_t{sizeof(int32_t)}); }
  int64_t logits() const { return hidden() + aligned(chunk_rows * width * hidden_bytes); }
  int64_t library() const {
    return logits() + aligned(chunk_rows * vocab * int64_t{sizeof(float)});
  }
};

// The products of chunks of so many rows.
struct ChunkProducts {
  std::shared_ptr<const Product> logits, dhidden, dweight_first, dweight_next;
};

class LossPlan : public Prepared {
 public:
  LossPlan(const LossForm& form, const OperationView& view, CublasLt& library)
      : layout(form, view), whole(products(form, view, layout.chunk_rows, library)) {
    if (const int64_t rest = layout.tokens % layout.chunk_rows; rest > 0)
      last = products(form, view, rest, library);
  }

  const ChunkProducts& of(int64_t rows) const { return rows == layout.chunk_rows ? whole : last; }

  LossLayout layout;

 private:
  ChunkProducts products(const LossForm& form, const OperationView& view, int64_t rows,
                         CublasLt& library) const;

  ChunkProducts whole;
  ChunkProducts last;
};

ChunkProducts LossPlan::products(const LossForm& form, const OperationView& view, int64_t rows,
                                 CublasLt& library) const {
  const base::DType type = view.read(0).dtype;
  const StoredMatrix hidden = dense_matrix(type, rows, layout.width);
  const StoredMatrix weight = stored_matrix(view.read(1));
  const StoredMatrix logits = dense_matrix(base::DType::f32, rows, layout.vocab);
  ChunkProducts made;
  made.logits = library.product(
      {.a = hidden, .b = weight, .addend = logits, .c = logits, .transpose_b = true});
  if (!form.train) return made;
  StoredMatrix dlogits = dense_matrix(type, rows, layout.vocab);
  dlogits.stride = layout.vocab * int64_t{sizeof(float)} / layout.hidden_bytes;
  made.dhidden = library.product({.a = dlogits, .b = weight, .addend = hidden, .c = hidden});
  if (!form.weight_gradient) return made;
  const StoredMatrix dweight = stored_matrix(form.accumulate ? view.update(0) : view.write(3));
  ProductShape shape{
      .a = dlogits, .b = hidden, .addend = dweight, .c = dweight, .transpose_a = true};
  made.dweight_first = library.product(shape);
  shape.beta = 1.0F;
  made.dweight_next = library.product(shape);
  return made;
}

// One run of either form.
class LossRun {
 public:
  LossRun(const LossForm& form, const Invocation& invocation, CudaContext& context)
      : form_(form),
        invocation_(invocation),
        plan_(static_cast<const LossPlan&>(*invocation.prepared)),
        stream_(context.stream.get()) {}

  void run() {
    const LossLayout& layout = plan_.layout;
    auto* losses = floats_of(invocation_.writes[0]);
    find_trained_rows({.targets = integers_of(invocation_.reads[2]),
                       .tokens = layout.tokens,
                       .numbers = at<int32_t>(layout.numbers()),
                       .count = at<int32_t>(0),
                       .losses = losses},
                      stream_);
    if (form_.train) {
      Matrix dhidden = matrix_of(invocation_.writes[2]);
      const Walk walk = walk_flat({&dhidden});
      fill_zero({walk, dhidden.operand}, stream_);
    }
    for (int64_t first = 0; first < layout.tokens; first += layout.chunk_rows)
      run_chunk(first, std::min(layout.chunk_rows, layout.tokens - first));
    sum_losses(losses, layout.tokens, floats_of(invocation_.reads[3]),
               floats_of(invocation_.writes[1]), stream_);
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(invocation_.workspace.data + offset);
  }
  std::byte* library_workspace() const { return at<std::byte>(plan_.layout.library()); }

  // The chunk's rows, by token in `by_token`.
  ChunkRowsRun chunk_rows(const Matrix& by_token, const TrainedRows& trained, int64_t rows) const {
    Matrix chunk = by_token;
    chunk.operand.data = at<std::byte>(plan_.layout.hidden());
    chunk.operand.stride = plan_.layout.width;
    chunk.rows = rows;
    return {walk_rows({&chunk, &by_token}), trained, by_token.operand, chunk.operand};
  }

  void run_chunk(int64_t first, int64_t rows) {
    const LossLayout& layout = plan_.layout;
    const ChunkProducts& products = plan_.of(rows);
    const TrainedRows trained{at<int32_t>(layout.numbers()), at<int32_t>(0), first};
    const Matrix hidden = matrix_of(invocation_.reads[0]);
    gather_chunk(chunk_rows(hidden, trained, rows), stream_);
    std::byte* const logits = at<std::byte>(layout.logits());
    std::byte* const chunk = at<std::byte>(layout.hidden());
    const void* const weight = invocation_.reads[1].data;
    products.logits->multiply({.a = chunk, .b = weight, .c = logits}, library_workspace(), stream_);
    softmax(logits, trained, rows);
    if (!form_.train) return;
    if (form_.weight_gradient) {
      std::byte* const dweight =
          (form_.accumulate ? invocation_.updates[0] : invocation_.writes[3]).data;
      const bool is_first = first == 0 && !form_.accumulate;
      (is_first ? products.dweight_first : products.dweight_next)
          ->multiply({.a = logits, .b = chunk, .addend = dweight, .c = dweight},
                     library_workspace(), stream_);
    }
    products.dhidden->multiply({.a = logits, .b = weight, .c = chunk}, library_workspace(),
                               stream_);
    scatter_chunk(chunk_rows(matrix_of(invocation_.writes[2]), trained, rows), stream_);
  }

  void softmax(std::byte* logits, const TrainedRows& trained, int64_t rows) const {
    const LossLayout& layout = plan_.layout;
    const bool is_bf16 = invocation_.reads[0].dtype == base::DType::bf16;
    const Operand dlogits{logits, is_bf16 ? 2 * layout.vocab : layout.vocab, is_bf16};
    softmax_rows({.rows = rows,
                  .vocab = layout.vocab,
                  .trained = trained,
                  .logits = {logits, layout.vocab, false},
                  .targets = integers_of(invocation_.reads[2]),
                  .inverse_tokens = floats_of(invocation_.reads[3]),
                  .losses = floats_of(invocation_.writes[0]),
                  .dlogits = form_.train ? dlogits : Operand{}},
                 stream_);
  }

  LossForm form_;
  const Invocation& invocation_;
  const LossPlan& plan_;
  cudaStream_t stream_;
};

bool supports_loss(const LossForm& form, const OperationView& view) {
  const base::DType type = view.read(0).dtype;
  if (!supports_product(type, view.read(1).dtype, base::DType::f32)) return false;
  if (form.train && view.write(2).dtype != type) return false;
  if (!form.weight_gradient) return true;
  return supports_product(type, type, (form.accumulate ? view.update(0) : view.write(3)).dtype);
}

int64_t loss_bytes(const LossForm& form, const OperationView& view, const CudaContext& context) {
  return LossLayout(form, view).library() + context.cublas_lt.workspace_bytes();
}

}  // namespace

bool supports(const LinearCrossEntropy& loss, const OperationView& view, const CudaContext&) {
  return supports_loss(form_of(loss), view);
}
bool supports(const LinearCrossEntropyTrain& loss, const OperationView& view, const CudaContext&) {
  return supports_loss(form_of(loss), view);
}

int64_t workspace_bytes(const LinearCrossEntropy& loss, const OperationView& view,
                        const CudaContext& context) {
  return loss_bytes(form_of(loss), view, context);
}
int64_t workspace_bytes(const LinearCrossEntropyTrain& loss, const OperationView& view,
                        const CudaContext& context) {
  return loss_bytes(form_of(loss), view, context);
}

std::unique_ptr<Prepared> prepare(const LinearCrossEntropy& loss, const OperationView& view,
                                  CudaContext& context) {
  return std::make_unique<LossPlan>(form_of(loss), view, context.cublas_lt);
}
std::unique_ptr<Prepared> prepare(const LinearCrossEntropyTrain& loss, const OperationView& view,
                                  CudaContext& context) {
  return std::make_unique<LossPlan>(form_of(loss), view, context.cublas_lt);
}

void run(const LinearCrossEntropy& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss), invocation, context).run();
}
void run(const LinearCrossEntropyTrain& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss), invocation, context).run();
}

}  // namespace snug::backends::cuda
