#include "backends/cpu/loss/loss_plan.h"

#include <algorithm>

#include "backends/cpu/loss/loss_vectors.h"
#include "backends/cpu/parallel.h"
#include "base/error.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

// A block's logits, 2 KiB per row in bf16, and its part of the weight stay in the second-level
// cache.
constexpr int64_t kBlockColumns = 1024;

// The shape of products with a block of columns.
struct BlockShape {
  int64_t rows;
  int64_t columns;
};

// (rows, columns) = hidden weight^T.
MatmulSpec logits_spec(const LossShape& shape, const BlockShape& block) {
  MatmulSpec spec{.m = block.rows, .n = block.columns, .k = shape.width};
  spec.a_type = spec.b_type = shape.type;
  spec.a_strides[0] = shape.width;
  spec.b_strides[0] = 1;
  spec.b_strides[1] = shape.weight_stride;
  spec.c_stride = block.columns;
  spec.alpha = shape.scale;
  return spec;
}

// (rows, width) = dlogits weight.
MatmulSpec dhidden_spec(const LossShape& shape, const BlockShape& block, MatmulSpec::Add add) {
  MatmulSpec spec{.m = block.rows, .n = shape.width, .k = block.columns};
  spec.a_type = spec.b_type = shape.type;
  spec.a_strides[0] = block.columns;
  spec.b_strides[0] = shape.weight_stride;
  spec.c_stride = shape.width;
  spec.add = add;
  return spec;
}

// (columns, width) = dlogits^T hidden.
MatmulSpec dweight_spec(const LossShape& shape, const BlockShape& block, MatmulSpec::Add add) {
  MatmulSpec spec{.m = block.columns, .n = shape.width, .k = block.rows};
  spec.a_type = spec.b_type = shape.type;
  spec.c_type = shape.dweight_type;
  spec.a_strides[0] = 1;
  spec.a_strides[1] = block.columns;
  spec.b_strides[0] = shape.width;
  spec.c_stride = shape.dweight_stride;
  spec.add = add;
  return spec;
}

BlockProducts products_of(const LossShape& shape, const BlockShape& block,
                          const LossAlgorithms& algorithms, const CpuContext& context) {
  using Add = MatmulSpec::Add;
  BlockProducts products{.logits = Product(logits_spec(shape, block), algorithms.logits, context),
                         .dhidden_first = {},
                         .dhidden_next = {},
                         .dweight_first = {},
                         .dweight_next = {}};
  const auto dhidden = [&](Add add) {
    return Product(dhidden_spec(shape, block, add), algorithms.dhidden, context);
  };
  const auto dweight = [&](Add add) {
    MatmulSpec spec = dweight_spec(shape, block, add);
    spec.step = algorithms.dweight_step;
    return Product(spec, algorithms.dweight, context);
  };
  if (shape.train) {
    products.dhidden_first = dhidden(Add::nothing);
    products.dhidden_next = dhidden(Add::destination);
  }
  if (!shape.weight_gradient) return products;
  products.dweight_next = dweight(Add::destination);
  if (!shape.accumulate) products.dweight_first = dweight(Add::nothing);
  return products;
}

// The rows of every possible chunk, largest first.
std::vector<int64_t> rows_of_chunks(const LossShape& shape) {
  std::vector<int64_t> rows{shape.chunk_rows};
  while (rows.back() / 2 >= program::kMinChunkRows) rows.push_back(rows.back() / 2);
  return rows;
}

LossAlgorithms algorithms_for(const LossShape& shape, int64_t columns, const CpuContext& context) {
  using Add = MatmulSpec::Add;
  const std::vector<int64_t> rows = rows_of_chunks(shape);
  // `specs_of` gives the products of a chunk, all of which use one algorithm.
  const auto choose = [&](const auto& specs_of) {
    const ProductAlgorithm fastest =
        algorithm_of(specs_of(BlockShape{rows.front(), columns}).front(), context);
    const bool runs_all = std::ranges::all_of(rows, [&](int64_t each) {
      return std::ranges::all_of(specs_of(BlockShape{each, columns}), [&](const MatmulSpec& spec) {
        return runs_product(spec, fastest, context);
      });
    });
    return runs_all ? fastest : algorithm_of_any(shape.type, context);
  };
  using Specs = std::vector<MatmulSpec>;
  LossAlgorithms algorithms;
  algorithms.logits =
      choose([&](const BlockShape& block) { return Specs{logits_spec(shape, block)}; });
  if (shape.train)
    algorithms.dhidden = choose([&](const BlockShape& block) {
      return Specs{dhidden_spec(shape, block, Add::nothing),
                   dhidden_spec(shape, block, Add::destination)};
    });
  if (!shape.weight_gradient) return algorithms;
  algorithms.dweight = choose([&](const BlockShape& block) {
    return Specs{dweight_spec(shape, block, Add::nothing),
                 dweight_spec(shape, block, Add::destination)};
  });
  algorithms.dweight_step =
      step_of(dweight_spec(shape, {rows.front(), columns}, Add::nothing), algorithms.dweight);
  return algorithms;
}

template <typename F>
void for_each_product(const BlockProducts& products, F&& f) {
  f(products.logits);
  for (const auto* product : {&products.dhidden_first, &products.dhidden_next,
                              &products.dweight_first, &products.dweight_next})
    if (product->has_value()) f(**product);
}

template <typename F>
void for_each_product(const std::vector<LossChunk>& chunks, F&& f) {
  for (const LossChunk& chunk : chunks) {
    for_each_product(chunk.whole, f);
    if (chunk.rest) for_each_product(*chunk.rest, f);
  }
}

}  // namespace

// The logits of a chunk stay below 128 MiB; its rows are a power of two, so that there are few
// shapes.
int64_t default_chunk_rows(int64_t vocab, int64_t tokens) {
  constexpr int64_t kLogitsBytes = int64_t{128} << 20;
  constexpr int64_t kMaxRows = 2048;
  int64_t rows = program::kMinChunkRows;
  while (rows < std::min(kMaxRows, tokens) && rows * 2 * vocab * 4 <= kLogitsBytes) rows *= 2;
  return rows;
}

int64_t default_block_columns(int64_t vocab) { return std::min(kBlockColumns, vocab); }

LossShape with_algorithms(LossShape shape, const CpuContext& context) {
  const int64_t columns = shape.block_columns;
  shape.whole = algorithms_for(shape, columns, context);
  if (const int64_t rest = shape.vocab % columns; rest > 0)
    shape.rest = algorithms_for(shape, rest, context);
  return shape;
}

bool copies_matrices(const LossShape& shape) {
  const auto copies = [&](int64_t columns, const LossAlgorithms& algorithms) {
    using Add = MatmulSpec::Add;
    const BlockShape block{shape.chunk_rows, columns};
    ProductCopies all = copies_of(logits_spec(shape, block), algorithms.logits);
    if (shape.train) all |= copies_of(dhidden_spec(shape, block, Add::nothing), algorithms.dhidden);
    if (shape.weight_gradient)
      all |= copies_of(dweight_spec(shape, block, Add::nothing), algorithms.dweight);
    return all != ProductCopies{};
  };
  const int64_t rest = shape.vocab % shape.block_columns;
  return copies(shape.block_columns, shape.whole) || (rest > 0 && copies(rest, shape.rest));
}

LossPlan::LossPlan(const LossShape& shape, const CpuContext& context) : shape_(shape) {
  const int64_t columns = shape_.block_columns;
  SNUG_CHECK(shape_.chunk_rows > 0 && columns > 0 && columns <= shape_.vocab &&
                 shape_.algorithm == program::LossAlgorithm::halved_chunks,
             "a linear cross-entropy with algorithm {} in chunks of {} rows and {} columns, which "
             "the cpu backend does not run",
             base::word_of(shape_.algorithm), shape_.chunk_rows, columns);
  SNUG_CHECK(!copies_matrices(shape_),
             "a linear cross-entropy by the library of a head with gaps between its rows");
  const int64_t rest = shape_.vocab % columns;
  for (const int64_t rows : rows_of_chunks(shape_)) {
    LossChunk chunk{rows, products_of(shape_, {rows, columns}, shape_.whole, context), {}};
    if (rest > 0) chunk.rest = products_of(shape_, {rows, rest}, shape_.rest, context);
    chunks_.push_back(std::move(chunk));
  }
  lay_out();
}

void LossPlan::lay_out() {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t rows = shape_.chunk_rows;
  hidden_offset_ = whole_lines(shape_.tokens * static_cast<int64_t>(sizeof(int32_t)));
  dhidden_offset_ = hidden_offset_ + whole_lines(rows * shape_.width * base::size_of(shape_.type));
  logits_offset_ = dhidden_offset_ + (shape_.train ? whole_lines(rows * shape_.width * kFloat) : 0);
  const int64_t logits_bytes = whole_lines(rows * shape_.vocab * kFloat);
  product_offset_ = logits_offset_ + (shape_.gain_gradient ? logits_bytes : 0);
  vectors_offset_ = product_offset_ + logits_bytes;
  scratch_offset_ = vectors_offset_ + whole_lines(LossVectors::scratch_floats(shape_) * kFloat);
  int64_t scratch = 0;
  for_each_product(chunks_, [&](const Product& product) {
    scratch = std::max(scratch, product.scratch_bytes());
  });
  workspace_bytes_ = scratch_offset_ + scratch;
}

void LossPlan::create() const {
  for_each_product(chunks_, [](const Product& product) { product.create(); });
}

int64_t LossPlan::columns(int64_t block) const {
  return std::min(shape_.block_columns, shape_.vocab - block * shape_.block_columns);
}

int64_t LossPlan::blocks() const { return ceil_div(shape_.vocab, shape_.block_columns); }

const BlockProducts& LossPlan::products(const LossChunk& chunk, int64_t block) const {
  return columns(block) == shape_.block_columns ? chunk.whole : *chunk.rest;
}

int64_t LossPlan::logits_offset(const LossChunk& chunk, int64_t block) const {
  return logits_offset_ +
         block * shape_.block_columns * chunk.rows * static_cast<int64_t>(sizeof(float));
}

const LossChunk& LossPlan::next(int64_t rows) const {
  const int64_t wanted = program::next_halved_chunk(shape_.chunk_rows, rows);
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                  [&](const LossChunk& each) { return each.rows == wanted; });
  SNUG_CHECK(chunk != chunks_.end(), "a chunk of {} rows, of {}", wanted, shape_.chunk_rows);
  return *chunk;
}

}  // namespace snug::backends::cpu
