// The head's loss in chunks of the rows that carry loss. The device finds these rows. The host says
// how many chunks they fill (Invocation::extent()); where it does not, every chunk that could be
// needed runs. Rows beyond the last one are zero in all products, so that the bits do not depend on
// the number of chunks that run.
//
// For each chunk: its rows of hidden are gathered; logits = (hidden weight^T [+ bias]) [* gain] in
// f32; softmax overwrites them with dlogits (in hidden's type; if that has 16 bits, in the first
// half of each row's bytes); dgain (+)= the sum of dlogits times the input of the gain, and dlogits
// are multiplied by the gain; dbias (+)= the sum of their rows; dweight (+)= dlogits^T hidden;
// dlogits weight overwrites the chunk's hidden and is scattered to dhidden.
#include <algorithm>

#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/expert/token_factors.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/loss/kernels/cross_entropy.h"
#include "backends/cuda/loss/linear_cross_entropy_needs.h"
#include "backends/cuda/product/kernels/column_scale.h"
#include "backends/cuda/product/kernels/column_sums.h"
#include "backends/cuda/product/matrices.h"
#include "backends/cuda/product/tune_product.h"
#include "backends/loss_operands.h"
#include "base/error.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cuda {
namespace {

using program::LinearCrossEntropy;
using program::LinearCrossEntropyTrain;
using program::LossProducts;
using program::OperationView;
using program::ProductAlgorithm;
using LossTensors = LossForm<program::Tensor>;
using LossBuffers = LossForm<Buffer>;

// The products for chunks of a given number of rows.
struct ChunkProducts {
  std::shared_ptr<Product> logits, dhidden, dweight_first, dweight_next;
};

class LossPlan : public Prepared {
 public:
  LossPlan(const LossTensors& form, int32_t planned_launches, CublasLt& library)
      : layout(form), whole(products(form, layout.chunk_rows, library)) {
    SNUG_CHECK(form.algorithm == program::LossAlgorithm::chunks,
               "a linear cross-entropy by algorithm {}, which a card does not run",
               base::word_of(form.algorithm));
    const int32_t most = chunk_launches(form, library.multiprocessors(), library.workspace_bytes());
    SNUG_CHECK(most == planned_launches,
               "a chunk of a loss takes up to {} launches here, planned were {}", most,
               planned_launches);
    if (const int64_t rest = layout.tokens % layout.chunk_rows; rest > 0)
      last = products(form, rest, library);
  }

  const ChunkProducts& of(int64_t rows) const { return rows == layout.chunk_rows ? whole : last; }
  // The difference between the most launches of products for any chunk and those for a chunk of
  // `rows` rows.
  int64_t spared_by(int64_t rows) const {
    return std::max(most_launches(whole), most_launches(last)) - most_launches(of(rows));
  }

  LossLayout layout;
  ChunkProducts whole;
  ChunkProducts last;  // for the rows after the last whole chunk; null if there are none

 private:
  ChunkProducts products(const LossTensors& form, int64_t rows, CublasLt& library) const;
  static int64_t most_launches(const ChunkProducts& products) {
    int64_t launches = 0;
    for (const auto& product : {products.logits, products.dhidden, products.dweight_first})
      if (product != nullptr) launches += product->most_launches();
    return launches;
  }
};

ChunkProducts LossPlan::products(const LossTensors& form, int64_t rows, CublasLt& library) const {
  const auto product = [&](const ProductShape& shape, ProductAlgorithm planned) {
    std::shared_ptr<Product> made = library.product(shape);
    SNUG_CHECK(made->algorithm() == planned,
               "a product of a loss is planned by algorithm {}, and has {} here",
               base::word_of(planned), base::word_of(made->algorithm()));
    return made;
  };
  const auto none = [](ProductAlgorithm planned) {
    SNUG_CHECK(planned == ProductAlgorithm::loops,
               "a product that a loss does not have is planned by algorithm {}",
               base::word_of(planned));
  };
  ChunkProducts made;
  made.logits = product(logits_shape(form, rows), form.products.logits);
  if (form.dweight == nullptr) none(form.products.dweight);
  if (form.dhidden == nullptr) {
    none(form.products.dhidden);
    return made;
  }
  made.dhidden = product(dhidden_shape(form, rows), form.products.dhidden);
  if (form.dweight == nullptr) return made;
  ProductShape dweight = dweight_shape(form, rows);
  made.dweight_first = product(dweight, form.products.dweight);
  dweight.beta = 1.0F;
  made.dweight_next = product(dweight, form.products.dweight);
  return made;
}

// One run of either form of the loss.
class LossRun {
 public:
  LossRun(const LossBuffers& form, const Invocation& invocation, CudaContext& context)
      : form_(form),
        invocation_(invocation),
        plan_(static_cast<const LossPlan&>(*invocation.prepared)),
        stream_(context.stream.get()) {}

  void run() {
    const LossLayout& layout = plan_.layout;
    auto* losses = floats_of(form_.losses);
    const program::Extent extent = invocation_.extent();
    // At least one, since the first chunk writes the weight's gradient.
    const int64_t rows = std::max<int64_t>(1, static_cast<int64_t>(extent.rows));
    if (invocation_.bounds != nullptr) invocation_.note_extent(extent);
    find_trained_rows({.targets = integers_of(form_.targets),
                       .tokens = layout.tokens,
                       .numbers = at<int32_t>(layout.numbers()),
                       .count = at<int32_t>(0),
                       .losses = losses,
                       .most = rows},
                      stream_);
    if (form_.dhidden != nullptr) {
      Matrix dhidden = matrix_of(*form_.dhidden);
      const Walk walk = walk_flat({&dhidden});
      fill_zero({walk, dhidden.operand}, stream_);
    }
    for (int64_t first = 0; first < rows; first += layout.chunk_rows)
      run_chunk(first, std::min(layout.chunk_rows, layout.tokens - first));
    invocation_.note_decision<&LinearCrossEntropyTrain::chunks, &program::LossChunks::algorithm>(
        program::LossAlgorithm::chunks);
    note_algorithms(ran_, {}, invocation_);
    sum_losses(losses, layout.tokens, factors_of(form_.inverse_tokens), floats_of(form_.loss),
               stream_);
  }

  void tune(CublasLt& library) const {
    tune_chunk(plan_.whole, library);
    tune_chunk(plan_.last, library);
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(invocation_.workspace.data + offset);
  }
  std::byte* library_workspace() const { return at<std::byte>(plan_.layout.library()); }

  std::byte* logits() const { return at<std::byte>(plan_.layout.logits()); }
  // The result of the product, before bias and gain.
  std::byte* product() const { return at<std::byte>(plan_.layout.product()); }
  std::byte* chunk() const { return at<std::byte>(plan_.layout.hidden()); }

  // The addresses for a chunk's products. Its dhidden overwrites its hidden, its dlogits its
  // logits.
  Product::Addresses logits_addresses() const {
    return {.a = chunk(), .b = form_.weight.data, .c = product()};
  }
  Product::Addresses dhidden_addresses() const {
    return {.a = logits(), .b = form_.weight.data, .c = chunk()};
  }
  Product::Addresses dweight_addresses() const {
    std::byte* const dweight = form_.dweight->data;
    return {.a = logits(), .b = chunk(), .addend = dweight, .c = dweight};
  }

  void tune_chunk(const ChunkProducts& products, CublasLt& library) const {
    const auto choose = [&](const std::shared_ptr<Product>& product, const auto& addresses) {
      if (product != nullptr)
        tune_product(*product, addresses, {library_workspace(), stream_}, library);
    };
    choose(products.logits, logits_addresses());
    if (form_.dhidden == nullptr) return;
    choose(products.dhidden, dhidden_addresses());
    if (form_.dweight == nullptr) return;
    choose(products.dweight_first, dweight_addresses());
    choose(products.dweight_next, dweight_addresses());
  }

  // Pairs the chunk's rows with those of `by_token`, a matrix indexed by token.
  ChunkRowsRun chunk_rows(const Matrix& by_token, const TrainedRows& trained, int64_t rows) const {
    Matrix gathered = by_token;
    gathered.operand = {chunk(), plan_.layout.width, by_token.operand.format};
    gathered.rows = rows;
    return {walk_rows({&gathered, &by_token}), trained, by_token.operand, gathered.operand};
  }

  void run_chunk(int64_t first, int64_t rows) {
    const LossLayout& layout = plan_.layout;
    const ChunkProducts& products = plan_.of(rows);
    const TrainedRows trained{at<int32_t>(layout.numbers()), at<int32_t>(0), first};
    const Matrix hidden = matrix_of(form_.hidden);
    invocation_.note_piece(rows);
    launch_count().spared += plan_.spared_by(rows);
    gather_chunk(chunk_rows(hidden, trained, rows), stream_);
    ran_.logits =
        multiply(note_choice_of<&LossAlgorithms::logits>, *products.logits, logits_addresses());
    if (form_.bias != nullptr) add_bias_to_product(rows);
    if (form_.gain != nullptr) scale(all_of(product(), rows), all_of(logits(), rows));
    softmax(logits(), trained, rows);
    if (form_.dhidden == nullptr) return;
    if (form_.dgain != nullptr) add_to_dgain(rows, first == 0);
    if (form_.gain != nullptr) scale(all_dlogits(rows), all_dlogits(rows));
    if (form_.dbias != nullptr) add_to_dbias(rows, first == 0);
    if (form_.dweight != nullptr) {
      const bool is_first = first == 0 && !form_.accumulate;
      ran_.dweight = multiply(note_choice_of<&LossAlgorithms::dweight>,
                              is_first ? *products.dweight_first : *products.dweight_next,
                              dweight_addresses());
    }
    ran_.dhidden =
        multiply(note_choice_of<&LossAlgorithms::dhidden>, *products.dhidden, dhidden_addresses());
    scatter_chunk(chunk_rows(matrix_of(*form_.dhidden), trained, rows), stream_);
  }

  Matrix all_of(std::byte* logits, int64_t rows) const {
    const int64_t vocab = plan_.layout.vocab;
    return {{logits, vocab}, rows, vocab};
  }
  Matrix all_dlogits(int64_t rows) const { return {dlogits(logits()), rows, plan_.layout.vocab}; }

  void scale(const Matrix& x, const Matrix& y) const {
    const Matrix gain = matrix_of(*form_.gain);
    scale_columns({walk_rows({&x, &gain, &y}), x.operand, gain.operand, {}, y.operand}, stream_);
  }

  void add_to_dgain(int64_t rows, bool is_first) const {
    const LossLayout& layout = plan_.layout;
    sum_products(
        {dlogits(logits()), all_of(product(), rows).operand, {}},
        {rows, layout.vocab, at<float>(layout.sums()), matrix_of(*form_.dgain).operand, !is_first},
        stream_);
  }

  void add_bias_to_product(int64_t rows) const {
    const Matrix all = all_of(product(), rows);
    const Matrix bias = matrix_of(*form_.bias);
    add_bias({walk_rows({&all, &bias, &all}), all.operand, bias.operand, all.operand}, stream_);
  }

  // Adds the sum of a chunk's dlogits, in which rows beyond the last are zero.
  void add_to_dbias(int64_t rows, bool is_first) const {
    const LossLayout& layout = plan_.layout;
    sum_rows(
        dlogits(logits()),
        {rows, layout.vocab, at<float>(layout.sums()), matrix_of(*form_.dbias).operand, !is_first},
        stream_);
  }

  // note_choice() for one of the decisions.
  using NoteChoice = void (*)(const Product& product, const Invocation& invocation);
  template <auto product>
  static constexpr NoteChoice note_choice_of =
      note_choice<&LinearCrossEntropyTrain::products, &LossProducts::main, product>;

  // Runs a product and returns the algorithm that computed it; records the choice for a product
  // that is timed.
  ProductAlgorithm multiply(NoteChoice note, const Product& product,
                            const Product::Addresses& addresses) const {
    product.multiply(addresses, library_workspace(), stream_);
    note(product, invocation_);
    return product.algorithm();
  }

  // The gradients of logits, which have overwritten them.
  DeviceRows dlogits(std::byte* logits) const {
    const ElementFormat format = format_of(form_.hidden.dtype);
    const int64_t vocab = plan_.layout.vocab;
    return {logits, is_narrow(format) ? 2 * vocab : vocab, format};
  }

  void softmax(std::byte* logits, const TrainedRows& trained, int64_t rows) const {
    const LossLayout& layout = plan_.layout;
    softmax_rows({.rows = rows,
                  .vocab = layout.vocab,
                  .trained = trained,
                  .logits = {logits, layout.vocab},
                  .targets = integers_of(form_.targets),
                  .factors = factors_of(form_.inverse_tokens),
                  .losses = floats_of(form_.losses),
                  .scale = form_.scale,
                  .softcap = form_.softcap,
                  .smoothing = form_.smoothing,
                  .dlogits = form_.dhidden != nullptr ? dlogits(logits) : DeviceRows{}},
                 stream_);
  }

  LossBuffers form_;
  const Invocation& invocation_;
  const LossPlan& plan_;
  cudaStream_t stream_;
  LossAlgorithms ran_ = {};
};

template <typename Loss>
std::unique_ptr<Prepared> prepare_loss(const Loss& loss, const OperationView& view,
                                       CudaContext& context) {
  const auto& [block_columns, main, rest] = loss.products;
  SNUG_CHECK(block_columns == 0 && main.dweight_step == 0 && rest == LossAlgorithms(),
             "a linear cross-entropy in blocks of {} columns, which a card does not run",
             block_columns);
  SNUG_CHECK(loss.chunks.rows > 0, "a linear cross-entropy in chunks of {} rows", loss.chunks.rows);
  return std::make_unique<LossPlan>(form_of(loss, view), loss.chunk_launches, context.cublas_lt);
}
std::unique_ptr<Prepared> prepare(const LinearCrossEntropy& loss, const OperationView& view,
                                  CudaContext& context) {
  return prepare_loss(loss, view, context);
}
std::unique_ptr<Prepared> prepare(const LinearCrossEntropyTrain& loss, const OperationView& view,
                                  CudaContext& context) {
  return prepare_loss(loss, view, context);
}

void tune(const LinearCrossEntropy& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss, invocation), invocation, context).tune(context.cublas_lt);
}
void tune(const LinearCrossEntropyTrain& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss, invocation), invocation, context).tune(context.cublas_lt);
}

void run(const LinearCrossEntropy& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss, invocation), invocation, context).run();
}
void run(const LinearCrossEntropyTrain& loss, const Invocation& invocation, CudaContext& context) {
  LossRun(form_of(loss, invocation), invocation, context).run();
}

}  // namespace

SNUG_CUDA_KIND(LinearCrossEntropy, .takes_extent = true, .prepare = prepare, .tune = tune);
SNUG_CUDA_KIND(LinearCrossEntropyTrain, .takes_extent = true, .prepare = prepare, .tune = tune);

}  // namespace snug::backends::cuda
