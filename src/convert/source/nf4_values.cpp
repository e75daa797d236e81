// A linear is read twice. The first time its blocks' scales are found, which double quantisation
// replaces by what eight bits stand for; the second time the codes of the blocks that hold the rows
// asked for. The scales of the last linear are kept, and so is the whole of one that is stored as
// (in, out), since bitsandbytes quantises its transpose.
#include "convert/source/nf4_values.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "formats/quantization/nf4.h"
#include "models/families/families.h"
#include "models/weights.h"
#include "runtime/conversion/convert.h"
#include "runtime/loading/stored_weight.h"

namespace snug::convert {
namespace {

using base::DType;
using formats::kNf4BlockSize;

// The first reading's pieces, in rows as far as these have this size.
constexpr int64_t kScaleBytes = int64_t{4} << 20;

enum class Quantised : uint8_t { no, as_it_is, as_transpose };

// Rounds to a type of 16 bits and back.
void round_to(DType type, std::span<float> values) {
  if (type == DType::f32 || type == DType::f64) return;
  for (float& value : values) {
    std::array<std::byte, sizeof(float)> rounded;
    runtime::convert(DType::f32, &value, type, rounded.data(), 1);
    float back = 0;
    runtime::convert(type, rounded.data(), DType::f32, &back, 1);
    value = back;
  }
}

// Replaces scales by those that double quantisation stands for.
void quantise_scales(std::vector<float>& scales) {
  const int64_t blocks = std::ssize(scales);
  std::vector<uint8_t> codes(scales.size());
  std::vector<float> nested(static_cast<size_t>(formats::nested_blocks(blocks)));
  const float offset = formats::quantize_absmax(scales.data(), blocks, codes.data(), nested.data());
  const base::DynamicMap& map = base::signed_dynamic_map();
  for (int64_t i = 0; i < blocks; ++i) {
    const float product = map[codes[i]] * nested[i / formats::kNestedBlockSize];
    scales[i] = product + offset;
  }
}

// Replaces elements, which begin a block, by what their codes and these scales stand for.
void requantise(std::span<float> values, std::span<const float> scales) {
  std::array<uint8_t, kNf4BlockSize / 2> codes;
  for (size_t block = 0; block * kNf4BlockSize < values.size(); ++block) {
    const auto rest = values.subspan(block * kNf4BlockSize);
    const auto count = std::min<int64_t>(std::ssize(rest), kNf4BlockSize);
    float largest = 0;
    formats::quantize_nf4(DType::f32, rest.data(), count, codes.data(), &largest);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t pair = codes[i / 2];
      rest[i] = formats::kNf4Codes[i % 2 == 0 ? pair >> 4 : pair & 0xfU] * scales[block];
    }
  }
}

void find_scales(std::span<const float> values, float* scales) {
  std::array<uint8_t, kNf4BlockSize / 2> codes;
  for (int64_t first = 0; first < std::ssize(values); first += kNf4BlockSize)
    formats::quantize_nf4(DType::f32, values.data() + first,
                          std::min(std::ssize(values) - first, kNf4BlockSize), codes.data(),
                          scales++);
}

void transpose(std::span<const float> from, int64_t rows, std::vector<float>& to) {
  const int64_t columns = std::ssize(from) / rows;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

}  // namespace

class Nf4Values::Impl {
 public:
  Impl(const WeightSource& base, const Nf4Options& options) : base_(base), options_(options) {
    if (base.model() == nullptr)
      base::throw_user_error(
          "{}: Snug does not know this model ({}), so that it cannot tell which of its weights "
          "were "
          "quantised for training in 4 bits; set merge_into=16bit",
          base.companions().string(), models::family_names());
    const auto linears = linears_of(*base.model());
    for (const SourceTensor& tensor : base.tensors()) {
      const auto found = tensor.is_other ? linears.end() : linears.find(tensor.weight_name());
      quantised_.push_back(found == linears.end() ? Quantised::no : found->second);
      tensors_.push_back(tensor);
      if (quantised_.back() == Quantised::no) continue;
      if (!tensor.is_stored_so)
        base::throw_user_error("{}: '{}' is quantised already; the model in 16 bits is needed",
                               base.companions().string(), tensor.name);
      tensors_.back().is_stored_so = false;
    }
  }

  const WeightSource& base() const { return base_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }

  // Linears are read twice.
  int64_t stored_bytes() const {
    int64_t bytes = base_.stored_bytes();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (quantised_[i] == Quantised::as_it_is)
        bytes += tensors_[i].elements() * base::size_of(tensors_[i].dtype);
    return bytes;
  }

  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const {
    const size_t place = place_of(tensor);
    const SourceTensor& of_base = base_.tensors()[place];
    const int64_t inner = base_.read_bytes(of_base, rows);
    if (quantised_[place] == Quantised::no) return inner;
    const int64_t width = tensor.row_elements();
    if (quantised_[place] == Quantised::as_transpose)
      return base_.read_bytes(of_base, tensor.rows()) + 2 * tensor.elements() * kValueBytes +
             scale_bytes(tensor);
    const int64_t around = 2 * (kNf4BlockSize + width);
    const int64_t most = std::max(rows * width, scale_rows(width) * width) + around;
    return inner + most * kValueBytes + scale_bytes(tensor);
  }

  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const {
    const size_t place = place_of(tensor);
    const SourceTensor& of_base = base_.tensors()[place];
    if (quantised_[place] == Quantised::no) return base_.read(of_base, first, rows, values);
    const auto kept = kept_of(place);
    const int64_t width = tensor.row_elements();
    if (quantised_[place] == Quantised::as_transpose) {
      std::copy_n(kept->begin() + first * width, rows * width, values.begin());
      return;
    }
    read_blocks(of_base, first * width, rows * width, *kept, values);
  }

  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const {
    SNUG_CHECK(tensor.is_stored_so, "{} is not stored so", tensor.name);
    base_.copy(base_.tensors()[place_of(tensor)], offset, bytes);
  }

 private:
  std::unordered_map<std::string, Quantised> linears_of(const models::ModelConfig& config) const {
    const models::Stack stack = models::stack_of(config);
    std::unordered_map<std::string, Quantised> linears;
    for (const models::Weight& weight : models::file_weights_of(stack))
      if (weight.is_quantised())
        linears.emplace(weight.name,
                        weight.transposed ? Quantised::as_transpose : Quantised::as_it_is);
    if (options_.head && !stack.tied_head)
      linears.emplace(models::head_weight(stack), Quantised::as_it_is);
    return linears;
  }

  size_t place_of(const SourceTensor& tensor) const {
    const auto place = static_cast<size_t>(&tensor - tensors_.data());
    SNUG_CHECK(place < tensors_.size(), "{} is no tensor of this source", tensor.name);
    return place;
  }

  static int64_t scale_rows(int64_t width) {
    return std::max<int64_t>(kScaleBytes / (width * kValueBytes), 1);
  }

  // Those that are kept, and what quantising them takes.
  static int64_t scale_bytes(const SourceTensor& tensor) {
    const int64_t blocks = formats::nf4_blocks(tensor.elements());
    return 2 * blocks * kValueBytes + blocks + formats::nested_blocks(blocks) * kValueBytes;
  }

  void read_rounded(const SourceTensor& tensor, int64_t first, int64_t rows,
                    std::span<float> values) const {
    base_.read(tensor, first, rows, values);
    if (base::size_of(tensor.dtype) != 2)
      round_to(runtime::quantised_from(tensor.dtype, options_.compute), values);
  }

  // Elements of a linear with the blocks that they are in.
  void read_blocks(const SourceTensor& tensor, int64_t first, int64_t count,
                   const std::vector<float>& scales, std::span<float> values) const {
    const int64_t width = tensor.row_elements();
    const int64_t begin = first / kNf4BlockSize * kNf4BlockSize;
    const int64_t end = std::min(
        (first + count + kNf4BlockSize - 1) / kNf4BlockSize * kNf4BlockSize, tensor.elements());
    const int64_t first_row = begin / width;
    const int64_t rows = (end + width - 1) / width - first_row;
    std::vector<float> read(static_cast<size_t>(rows * width));
    read_rounded(tensor, first_row, rows, read);
    const std::span<float> blocks = std::span(read).subspan(
        static_cast<size_t>(begin - first_row * width), static_cast<size_t>(end - begin));
    requantise(blocks, std::span(scales).subspan(static_cast<size_t>(begin / kNf4BlockSize)));
    std::copy_n(blocks.begin() + (first - begin), count, values.begin());
  }

  // The scales of a linear, or all values of one that is stored as (in, out).
  std::shared_ptr<const std::vector<float>> kept_of(size_t place) const {
    const std::lock_guard lock(mutex_);
    if (kept_ != nullptr && kept_of_ == place) return kept_;
    kept_ = std::make_shared<const std::vector<float>>(
        quantised_[place] == Quantised::as_transpose ? transposed_values(base_.tensors()[place])
                                                     : scales_of(base_.tensors()[place]));
    kept_of_ = place;
    return kept_;
  }

  std::vector<float> scales_of(const SourceTensor& tensor) const {
    std::vector<float> scales(static_cast<size_t>(formats::nf4_blocks(tensor.elements())));
    const int64_t width = tensor.row_elements();
    // Each piece ends with a block; what it has of the next one's rows is read again.
    const int64_t most = std::max(scale_rows(width) * width / kNf4BlockSize, int64_t{1});
    std::vector<float> read;
    for (int64_t block = 0; block < std::ssize(scales); block += most) {
      const int64_t first = block * kNf4BlockSize;
      const int64_t end = std::min(first + most * kNf4BlockSize, tensor.elements());
      const int64_t first_row = first / width;
      const int64_t rows = (end + width - 1) / width - first_row;
      read.resize(static_cast<size_t>(rows * width));
      read_rounded(tensor, first_row, rows, read);
      find_scales(std::span(read).subspan(static_cast<size_t>(first - first_row * width),
                                          static_cast<size_t>(end - first)),
                  scales.data() + block);
    }
    if (options_.double_quant) quantise_scales(scales);
    return scales;
  }

  std::vector<float> transposed_values(const SourceTensor& tensor) const {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    read_rounded(tensor, 0, tensor.rows(), values);
    std::vector<float> turned(values.size());
    transpose(values, tensor.rows(), turned);
    std::vector<float> scales(static_cast<size_t>(formats::nf4_blocks(tensor.elements())));
    find_scales(turned, scales.data());
    if (options_.double_quant) quantise_scales(scales);
    requantise(turned, scales);
    transpose(turned, tensor.row_elements(), values);
    return values;
  }

  const WeightSource& base_;
  const Nf4Options options_;
  std::vector<SourceTensor> tensors_;
  std::vector<Quantised> quantised_;  // of each tensor
  mutable std::mutex mutex_;
  mutable size_t kept_of_ = 0;
  mutable std::shared_ptr<const std::vector<float>> kept_;
};

Nf4Values::Nf4Values(const WeightSource& base, const Nf4Options& options)
    : impl_(std::make_unique<const Impl>(base, options)) {}
Nf4Values::~Nf4Values() = default;

std::span<const SourceTensor> Nf4Values::tensors() const { return impl_->tensors(); }
const nlohmann::json& Nf4Values::config() const { return impl_->base().config(); }
const std::filesystem::path& Nf4Values::companions() const { return impl_->base().companions(); }
const models::ModelConfig* Nf4Values::model() const { return impl_->base().model(); }
int64_t Nf4Values::stored_bytes() const { return impl_->stored_bytes(); }

int64_t Nf4Values::read_bytes(const SourceTensor& tensor, int64_t rows) const {
  return impl_->read_bytes(tensor, rows);
}

void Nf4Values::read(const SourceTensor& tensor, int64_t first, int64_t rows,
                     std::span<float> values) const {
  impl_->read(tensor, first, rows, values);
}

void Nf4Values::copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const {
  impl_->copy(tensor, offset, bytes);
}

}  // namespace snug::convert
