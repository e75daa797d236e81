#include "convert/source/merged_weights.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "convert/source/adapter_changes.h"
#include "convert/source/low_rank.h"
#include "convert/source/stored_values.h"
#include "models/config/multimodal.h"

namespace snug::convert {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;
using nlohmann::json;

// Columns' norms are summed over pieces of at most this size.
constexpr int64_t kNormBytes = int64_t{4} << 20;

// A tensor of the result.
struct Merged {
  const SourceTensor* base = nullptr;
  const WeightChange* change = nullptr;  // nullptr: as in the base
};

// Rows of a matrix of an adapter in fp32.
std::vector<float> rows_of(const TensorIndex& files, const IndexedTensor& matrix, int64_t first,
                           int64_t rows) {
  const int64_t width = matrix.info->shape[1];
  std::vector<float> values(static_cast<size_t>(rows * width));
  read_values(files, matrix, first * width, values);
  return values;
}

std::vector<float> transpose_of(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> transpose(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) transpose[j * rows + i] = values[i * columns + j];
  return transpose;
}

// The whole transpose.
std::vector<float> transpose_of(const TensorIndex& files, const IndexedTensor& matrix) {
  const int64_t rows = matrix.info->shape[0];
  const int64_t columns = matrix.info->shape[1];
  return transpose_of(rows_of(files, matrix, 0, rows), rows, columns);
}

// Rows of the transpose; reads no others.
std::vector<float> transposed_rows_of(const TensorIndex& files, const IndexedTensor& matrix,
                                      int64_t first, int64_t rows) {
  const int64_t columns = matrix.info->shape[0];
  const int64_t width = matrix.info->shape[1];
  std::vector<float> values(static_cast<size_t>(rows * columns));
  std::vector<float> row(static_cast<size_t>(rows));
  for (int64_t k = 0; k < columns; ++k) {
    read_values(files, matrix, k * width + first, row);
    for (int64_t i = 0; i < rows; ++i) values[i * columns + k] = row[i];
  }
  return values;
}

// Adds the product to rows of a weight of this width, as the base stores it.
void add_product(const TensorIndex& files, const LoraChange& lora, int64_t first, int64_t rows,
                 std::span<float> values) {
  const int64_t width = std::ssize(values) / std::max<int64_t>(rows, 1);
  const std::vector<float> left = lora.is_transposed
                                      ? transposed_rows_of(files, *lora.a, first, rows)
                                      : rows_of(files, *lora.b, first, rows);
  const std::vector<float> right =
      lora.is_transposed ? transpose_of(files, *lora.b) : rows_of(files, *lora.a, 0, lora.r);
  add_low_rank({.left = left.data(),
                .right = right.data(),
                .rows = rows,
                .columns = width,
                .r = lora.r,
                .scale = lora.scale},
               values.data());
}

// The factors of one expert, of those that all experts share: `left` (rows, r) of B, for the
// outputs from `first` on, and `right` (r, in) of A.
struct ExpertFactors {
  std::vector<float> left;
  std::vector<float> right;
};

ExpertFactors factors_of(const TensorIndex& files, const LoraChange& lora, int64_t expert,
                         int64_t first, int64_t rows) {
  const std::vector<float> b = rows_of(files, *lora.b, first, rows);
  ExpertFactors factors{.left = std::vector<float>(static_cast<size_t>(rows * lora.r)),
                        .right = rows_of(files, *lora.a, expert * lora.r, lora.r)};
  for (int64_t i = 0; i < rows * lora.r; ++i) factors.left[i] = b[i * lora.experts + expert];
  return factors;
}

// Adds the products to rows of one expert's matrix, or to the matrices of the experts from `first`
// on.
void add_expert_products(const TensorIndex& files, const LoraChange& lora, int64_t first,
                         int64_t rows, std::span<float> values) {
  const int64_t in = lora.a->info->shape[1];
  const int64_t out = lora.b->info->shape[0];
  if (lora.expert) {
    const ExpertFactors factors =
        factors_of(files, lora, *lora.expert, lora.first_out + first, rows);
    return add_low_rank({.left = factors.left.data(),
                         .right = factors.right.data(),
                         .rows = rows,
                         .columns = in,
                         .r = lora.r,
                         .scale = lora.scale},
                        values.data());
  }
  for (int64_t i = 0; i < rows; ++i) {
    const ExpertFactors factors = factors_of(files, lora, first + i, 0, out);
    const bool turned = lora.is_transposed;
    const std::vector<float> left = turned ? transpose_of(factors.right, lora.r, in) : factors.left;
    const std::vector<float> right =
        turned ? transpose_of(factors.left, out, lora.r) : factors.right;
    add_low_rank({.left = left.data(),
                  .right = right.data(),
                  .rows = turned ? in : out,
                  .columns = turned ? out : in,
                  .r = lora.r,
                  .scale = lora.scale},
                 values.data() + i * in * out);
  }
}

float factor(float magnitude, double squares) {
  return squares == 0 ? 0.0F : magnitude / static_cast<float>(std::sqrt(squares));
}

}  // namespace

class MergedWeights::Impl {
 public:
  Impl(const WeightSource& base, const std::filesystem::path& adapter)
      : base_(base), changes_(base, adapter), config_(base.config()) {
    tensors_.reserve(base.tensors().size() + 1);
    for (const SourceTensor& tensor : base.tensors()) add(tensor, changes_.of(tensor));
    if (const auto& head = changes_.own_head()) {
      add(*head->embedding, &head->change);
      tensors_.back().name = head->name;
      tensors_.back().weight = head->weight;
      tensors_.back().is_stored_so = head->change.is_empty() && head->embedding->is_stored_so;
    }
    settle_config();
  }

  const WeightSource& base() const { return base_; }
  const json& config() const { return config_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const models::ModelConfig* model() const {
    return changes_.model() ? &*changes_.model() : nullptr;
  }
  int64_t changed() const { return changed_; }

  int64_t stored_bytes() const {
    int64_t bytes = base_.stored_bytes() + changes_.files().total_bytes();
    if (const auto& head = changes_.own_head())
      bytes += head->embedding->elements() * base::size_of(head->embedding->dtype);
    return bytes;
  }

  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const {
    const Merged& merged = merged_of(tensor);
    int64_t bytes = base_.read_bytes(*merged.base, rows);
    if (merged.change == nullptr || !merged.change->lora) return bytes;
    const LoraChange& lora = *merged.change->lora;
    if (lora.experts > 0) return bytes + expert_bytes(lora, rows);
    const int64_t width = tensor.row_elements();
    // Both factors, and what they are transposed from.
    bytes += (rows + width) * lora.r * kValueBytes;
    if (lora.is_transposed) bytes += (rows + width * lora.r) * kValueBytes;
    if (lora.magnitude != nullptr)
      bytes += lora.is_transposed
                   ? 6 * width * kValueBytes + norm_rows(width) * (width + lora.r + 1) * kValueBytes
                   : rows * kValueBytes;
    return bytes;
  }

  // Outputs of B of all experts, the factors of one, and their transposes.
  static int64_t expert_bytes(const LoraChange& lora, int64_t rows) {
    const int64_t in = lora.a->info->shape[1];
    const int64_t outputs = lora.expert ? rows : lora.b->info->shape[0];
    return (outputs * lora.r * (lora.experts + 2) + 2 * in * lora.r) * kValueBytes;
  }

  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const {
    const Merged& merged = merged_of(tensor);
    if (merged.change == nullptr) return base_.read(*merged.base, first, rows, values);
    read_sum(merged, first, rows, values);
    const auto& lora = merged.change->lora;
    if (lora && lora->magnitude != nullptr) {
      if (lora->is_transposed)
        scale_columns(merged, tensor, values);
      else
        scale_rows(*lora, first, rows, values);
    }
  }

  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const {
    SNUG_CHECK(tensor.is_stored_so, "{} is not stored so", tensor.name);
    base_.copy(*merged_of(tensor).base, offset, bytes);
  }

 private:
  void add(const SourceTensor& tensor, const WeightChange* change) {
    SourceTensor& added = tensors_.emplace_back(tensor);
    if (change != nullptr) {
      ++changed_;
      added.is_stored_so = false;
      if (change->whole != nullptr) added.shape = change->whole->info->shape;
    }
    merged_.push_back({&tensor, change});
  }

  // What the adapter makes of the config: whether the head is the embedding, and the vocabulary.
  void settle_config() {
    if (!changes_.model()) return;
    const models::ModelConfig& model = *changes_.model();
    json* part = models::text_part(config_);
    json& text = part == nullptr ? config_ : *part;
    if (model.vocab_size != base_.model()->vocab_size) text["vocab_size"] = model.vocab_size;
    if (model.tied_embeddings == base_.model()->tied_embeddings || model.scaled_head) return;
    config_["tie_word_embeddings"] = model.tied_embeddings;
    text["tie_word_embeddings"] = model.tied_embeddings;
  }

  const Merged& merged_of(const SourceTensor& tensor) const {
    const auto place = static_cast<size_t>(&tensor - tensors_.data());
    SNUG_CHECK(place < tensors_.size(), "{} is no tensor of this source", tensor.name);
    return merged_[place];
  }

  // Without DoRA's magnitudes.
  void read_sum(const Merged& merged, int64_t first, int64_t rows, std::span<float> values) const {
    const WeightChange& change = *merged.change;
    const TensorIndex& files = changes_.files();
    const int64_t width = merged.base->row_elements();
    if (change.whole != nullptr)
      read_values(files, *change.whole, first * width, values);
    else
      base_.read(*merged.base, first, rows, values);
    for (int64_t i = 0; i < std::ssize(change.tokens); ++i) {
      const int64_t row = change.tokens[i] - first;
      if (row < 0 || row >= rows) continue;
      read_values(files, *change.rows, i * width,
                  values.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)));
    }
    if (!change.lora) return;
    if (change.lora->experts > 0)
      add_expert_products(files, *change.lora, first, rows, values);
    else
      add_product(files, *change.lora, first, rows, values);
  }

  void scale_rows(const LoraChange& lora, int64_t first, int64_t rows,
                  std::span<float> values) const {
    std::vector<float> magnitudes(static_cast<size_t>(rows));
    read_values(changes_.files(), *lora.magnitude, first, magnitudes);
    const int64_t width = std::ssize(values) / std::max<int64_t>(rows, 1);
    for (int64_t row = 0; row < rows; ++row) {
      float* const of_row = values.data() + row * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(of_row[i]) * of_row[i];
      const float scale = factor(magnitudes[row], squares);
      for (int64_t i = 0; i < width; ++i) of_row[i] *= scale;
    }
  }

  static int64_t norm_rows(int64_t width) {
    return std::max<int64_t>(kNormBytes / (width * kValueBytes), 1);
  }

  void scale_columns(const Merged& merged, const SourceTensor& tensor,
                     std::span<float> values) const {
    const std::shared_ptr<const std::vector<float>> factors = column_factors(merged, tensor);
    const auto width = std::ssize(*factors);
    for (int64_t i = 0; i < std::ssize(values); ++i) values[i] *= (*factors)[i % width];
  }

  // The norm of a column takes the whole weight, which is read for it once: the factors of the last
  // weight are kept.
  std::shared_ptr<const std::vector<float>> column_factors(const Merged& merged,
                                                           const SourceTensor& tensor) const {
    const std::lock_guard lock(factors_mutex_);
    if (factors_of_ == &merged) return factors_;
    const int64_t width = tensor.row_elements();
    std::vector<double> squares(static_cast<size_t>(width));
    const int64_t most = norm_rows(width);
    std::vector<float> piece;
    for (int64_t first = 0; first < tensor.rows(); first += most) {
      const int64_t rows = std::min(most, tensor.rows() - first);
      piece.resize(static_cast<size_t>(rows * width));
      read_sum(merged, first, rows, piece);
      for (int64_t i = 0; i < std::ssize(piece); ++i)
        squares[i % width] += static_cast<double>(piece[i]) * piece[i];
    }
    auto factors = std::make_shared<std::vector<float>>(static_cast<size_t>(width));
    read_values(changes_.files(), *merged.change->lora->magnitude, 0, *factors);
    for (int64_t i = 0; i < width; ++i) (*factors)[i] = factor((*factors)[i], squares[i]);
    factors_of_ = &merged;
    factors_ = std::move(factors);
    return factors_;
  }

  const WeightSource& base_;
  const AdapterChanges changes_;
  json config_;
  std::vector<SourceTensor> tensors_;
  std::vector<Merged> merged_;  // of each tensor
  int64_t changed_ = 0;
  mutable std::mutex factors_mutex_;
  mutable const Merged* factors_of_ = nullptr;
  mutable std::shared_ptr<const std::vector<float>> factors_;
};

MergedWeights::MergedWeights(const WeightSource& base, const std::filesystem::path& adapter)
    : impl_(std::make_unique<const Impl>(base, adapter)) {}
MergedWeights::~MergedWeights() = default;

std::span<const SourceTensor> MergedWeights::tensors() const { return impl_->tensors(); }
const json& MergedWeights::config() const { return impl_->config(); }
const std::filesystem::path& MergedWeights::companions() const {
  return impl_->base().companions();
}
const models::ModelConfig* MergedWeights::model() const { return impl_->model(); }
int64_t MergedWeights::stored_bytes() const { return impl_->stored_bytes(); }
int64_t MergedWeights::changed() const { return impl_->changed(); }

int64_t MergedWeights::read_bytes(const SourceTensor& tensor, int64_t rows) const {
  return impl_->read_bytes(tensor, rows);
}

void MergedWeights::read(const SourceTensor& tensor, int64_t first, int64_t rows,
                         std::span<float> values) const {
  impl_->read(tensor, first, rows, values);
}

void MergedWeights::copy(const SourceTensor& tensor, int64_t offset,
                         std::span<std::byte> bytes) const {
  impl_->copy(tensor, offset, bytes);
}

}  // namespace snug::convert
