#include "convert/folder/dequantize_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/seconds_since.h"
#include "convert/source/stored_values.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/hf_folder.h"
#include "formats/folder/model_writer.h"
#include "formats/quantization/fp8.h"
#include "formats/quantization/mxfp4.h"
#include "models/config/config.h"
#include "models/config/multimodal.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::BFloat16;
using base::DType;
using formats::IndexedTensor;
using formats::TensorIndex;
using models::Weight;
using nlohmann::json;

constexpr const char* kConfigKey = "quantization_config";
// Copied tensors are read and written in pieces of at most this size.
constexpr int64_t kCopyBytes = int64_t{4} << 20;

// A tensor of the result: a stack of experts or a linear in FP8 to decode, or a tensor whose bytes
// are copied.
struct Converted {
  formats::TensorSpec spec;
  const IndexedTensor* copied = nullptr;
  std::optional<formats::Mxfp4Parts> decoded{};
  std::optional<formats::Fp8Parts> fp8{};

  // Only for a stack of experts.
  int64_t experts() const { return spec.shape[0]; }
  int64_t in() const { return spec.shape[1]; }
  int64_t out() const { return spec.shape[2]; }
  int64_t expert_bytes() const { return spec.bytes() / experts(); }
  int64_t expert_blocks_bytes() const { return decoded->blocks->info->bytes() / experts(); }
  int64_t expert_scales_bytes() const { return decoded->scales->info->bytes() / experts(); }
};

json method_of(const formats::HfFolder& folder) {
  return folder.config().value(json::json_pointer("/quantization_config/quant_method"), json());
}

// The config.json of the result.
json config_without_quantization(const formats::HfFolder& folder) {
  json config = folder.config();
  const json method = method_of(folder);
  if (method != "mxfp4" && method != formats::kFp8Method)
    base::throw_user_error(
        "{}: the folder has no MXFP4 and no FP8 (its config.json has no quantization_config whose "
        "quant_method is mxfp4 or fp8), which is what snug dequantize reads. NF4 folders are "
        "trained as they are",
        folder.path().string());
  config.erase(kConfigKey);
  // transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = formats::torch_name(DType::bf16);
  if (json* part = models::text_part(config)) {
    part->erase(kConfigKey);
    for (const char* key : {"dtype", "torch_dtype"})
      if (part->contains(key)) (*part)[key] = formats::torch_name(DType::bf16);
  }
  return config;
}

// The tensors of a folder in FP8, in the order of its files.
std::vector<Converted> converted_from_fp8(const TensorIndex& index) {
  std::vector<Converted> list;
  list.reserve(index.tensors().size());
  for (const IndexedTensor& tensor : index.tensors()) {
    const formats::TensorInfo& info = *tensor.info;
    if (formats::fp8_linear_of(index, info.name)) continue;
    Converted result{.spec = {.name = info.name, .dtype = DType::bf16, .shape = info.shape}};
    result.fp8 = formats::find_fp8(index, info.name);
    if (!result.fp8) {
      result.copied = &tensor;
      if (info.dtype)
        result.spec.dtype = *info.dtype;
      else
        result.spec.other_dtype = info.stored_dtype;
    }
    list.push_back(std::move(result));
  }
  return list;
}

void check_copied(const TensorIndex& index, const IndexedTensor& tensor, const Weight& weight) {
  const formats::TensorInfo& info = *tensor.info;
  std::vector<int64_t> expected;
  expected.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < weight.shape.rank(); ++axis) expected.push_back(weight.shape[axis]);
  if (info.shape != expected || !info.dtype || !base::is_float(*info.dtype))
    base::throw_user_error(
        "{}: tensor '{}' is {} of {}; expected floats of {}, as config.json says",
        index.path_of(tensor).string(), info.name, formats::shape_text(info.shape),
        info.stored_dtype, formats::shape_text(expected));
}

// The tensors in the order of the model. Throws for tensors that do not belong to the model.
std::vector<Converted> converted(const TensorIndex& index, const models::Stack& stack) {
  std::vector<Converted> list;
  std::unordered_map<std::string, const Weight*> known;
  const std::vector<Weight> weights = models::file_weights_of(stack);
  for (const Weight& weight : weights) {
    known.emplace(weight.name, &weight);
    Converted& result = list.emplace_back();
    result.spec.name = weight.name;
    for (int axis = 0; axis < weight.shape.rank(); ++axis)
      result.spec.shape.push_back(weight.shape[axis]);
    if (weight.is_of_matrices())
      result.decoded = formats::find_mxfp4(index, weight.name, weight.shape[0], weight.shape[2],
                                           weight.shape[1]);
    result.spec.dtype = DType::bf16;
    if (result.decoded) continue;
    result.copied = &index.at(weight.name);
    check_copied(index, *result.copied, weight);
    result.spec.dtype = *result.copied->info->dtype;
  }
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    const auto stack_name = formats::mxfp4_stack_of(name);
    if (known.contains(name) || (stack_name && known.contains(std::string(*stack_name)))) continue;
    if (models::is_ignorable(name, stack)) continue;
    base::throw_user_error(
        "{}: tensor '{}' is not part of the model that config.json describes. Is config.json this "
        "model's?",
        index.path_of(tensor).string(), name);
  }
  return list;
}

}  // namespace

class FolderDequantizer::Impl {
 public:
  explicit Impl(const fs::path& path)
      : folder_(path),
        config_(config_without_quantization(folder_)),
        is_fp8_(method_of(folder_) == formats::kFp8Method),
        stack_(is_fp8_ ? models::Stack{}
                       : models::stack_of(
                             models::parse_config(config_.dump(), folder_.config_path().string()))),
        index_(is_fp8_ ? TensorIndex(folder_.path())
                       : models::open_weights(folder_.path(), stack_)),
        tensors_(is_fp8_ ? converted_from_fp8(index_) : converted(index_, stack_)) {
    plan_.buffer_bytes = kCopyBytes;
    for (const Converted& tensor : tensors_) {
      plan_.result_bytes += tensor.spec.bytes() + std::ssize(tensor.spec.name) + kHeaderBytes;
      if (tensor.copied != nullptr) {
        plan_.source_bytes += tensor.copied->info->bytes();
        continue;
      }
      if (tensor.fp8) {
        plan_linear(tensor);
        continue;
      }
      ++plan_.stacks;
      plan_.stack_weights += tensor.spec.bytes() / base::size_of(DType::bf16);
      plan_.source_bytes += tensor.decoded->blocks->info->bytes();
      plan_.source_bytes += tensor.decoded->scales->info->bytes();
      plan_.buffer_bytes =
          std::max(plan_.buffer_bytes, tensor.expert_blocks_bytes() + tensor.expert_scales_bytes() +
                                           tensor.expert_bytes());
    }
    if (plan_.stacks == 0 && plan_.linears == 0)
      base::throw_user_error("{}: config.json says {}, but no {} is stored so",
                             folder_.path().string(), is_fp8_ ? "FP8" : "MXFP4",
                             is_fp8_ ? "linear" : "expert");
  }

  const FolderDequantizePlan& plan() const { return plan_; }

  FolderReport write(const fs::path& output) const {
    const auto start = std::chrono::steady_clock::now();
    check_output(output, plan_.result_bytes);
    formats::DirectoryTransaction transaction(output);
    const int64_t bytes = write_weights(transaction.staging());
    base::write_file_atomically(transaction.staging() / "config.json", config_.dump(2) + "\n");
    formats::copy_companion_files(folder_.path(), transaction.staging());
    // An earlier check found at most an empty folder there.
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
    return {bytes, base::seconds_since(start)};
  }

 private:
  void plan_linear(const Converted& linear) {
    ++plan_.linears;
    plan_.linear_weights += linear.spec.bytes() / base::size_of(DType::bf16);
    plan_.source_bytes += linear.fp8->codes->info->bytes() + linear.fp8->scales->info->bytes();
    const int64_t scales = linear.fp8->scales->info->elements() * int64_t{sizeof(float)};
    const int64_t row = linear.spec.shape[1] * (1 + base::size_of(DType::bf16));
    plan_.buffer_bytes = std::max(plan_.buffer_bytes, scales + rows_of_piece(linear) * row);
  }

  // As many rows as have kCopyBytes codes, or one.
  static int64_t rows_of_piece(const Converted& linear) {
    return std::clamp(kCopyBytes / linear.spec.shape[1], int64_t{1}, linear.spec.shape[0]);
  }

  int64_t write_weights(const fs::path& folder) const {
    std::vector<formats::TensorSpec> specs;
    specs.reserve(tensors_.size());
    for (const Converted& tensor : tensors_) specs.push_back(tensor.spec);
    formats::ModelWriter writer(folder, specs);
    std::vector<std::byte> buffer(static_cast<size_t>(plan_.buffer_bytes));
    int64_t bytes = 0;
    for (const Converted& tensor : tensors_)
      bytes += tensor.fp8       ? decode_linear(tensor, buffer, writer)
               : tensor.decoded ? decode(tensor, buffer, writer)
                                : copy(tensor, buffer, writer);
    writer.finish();
    return bytes;
  }

  int64_t copy(const Converted& tensor, std::span<std::byte> buffer,
               formats::ModelWriter& writer) const {
    const int64_t whole = tensor.copied->info->bytes();
    int64_t written = 0;
    for (int64_t offset = 0; offset < whole; offset += kCopyBytes) {
      const int64_t bytes = std::min(kCopyBytes, whole - offset);
      index_.read_range(*tensor.copied, offset, bytes, buffer.data());
      written += writer.write(tensor.spec.name, buffer.data(), bytes);
    }
    return written;
  }

  // Decodes one expert at a time.
  int64_t decode(const Converted& tensor, std::span<std::byte> buffer,
                 formats::ModelWriter& writer) const {
    auto* const values = reinterpret_cast<BFloat16*>(buffer.data());
    auto* const blocks = reinterpret_cast<uint8_t*>(buffer.data()) + tensor.expert_bytes();
    uint8_t* const scales = blocks + tensor.expert_blocks_bytes();
    int64_t written = 0;
    for (int64_t expert = 0; expert < tensor.experts(); ++expert) {
      const auto read = [&](const IndexedTensor& part, int64_t bytes, uint8_t* to) {
        index_.read_range(part, expert * bytes, bytes, to);
      };
      read(*tensor.decoded->blocks, tensor.expert_blocks_bytes(), blocks);
      read(*tensor.decoded->scales, tensor.expert_scales_bytes(), scales);
      formats::decode_transposed(
          {.blocks = blocks, .scales = scales, .out = tensor.out(), .in = tensor.in()}, values);
      if (base::first_not_finite(DType::bf16, values, tensor.in() * tensor.out()))
        base::throw_user_error(
            "{}: expert {} of '{}' has a value that is not finite in bf16. Is the file whole? "
            "Download or copy it again",
            index_.path_of(*tensor.decoded->scales).string(), expert, tensor.spec.name);
      written += writer.write(tensor.spec.name, values, tensor.expert_bytes());
    }
    return written;
  }

  // Decodes some rows at a time.
  int64_t decode_linear(const Converted& linear, std::span<std::byte> buffer,
                        formats::ModelWriter& writer) const {
    const formats::Fp8Parts& parts = *linear.fp8;
    const int64_t columns = linear.spec.shape[1];
    const int64_t piece = rows_of_piece(linear);
    // The buffer holds the scales, then the values of some rows, then their codes.
    const std::span scales(reinterpret_cast<float*>(buffer.data()),
                           static_cast<size_t>(parts.scales->info->elements()));
    read_values(index_, *parts.scales, 0, scales);
    auto* const values = reinterpret_cast<BFloat16*>(scales.data() + scales.size());
    auto* const codes = reinterpret_cast<uint8_t*>(values + piece * columns);
    const int64_t block_rows = linear.spec.shape[0] / parts.scale_rows;
    const int64_t block_columns = columns / parts.scale_columns;
    int64_t written = 0;
    for (int64_t first = 0; first < linear.spec.shape[0]; first += piece) {
      const int64_t rows = std::min(piece, linear.spec.shape[0] - first);
      index_.read_range(*parts.codes, first * columns, rows * columns, codes);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t block = 0; block < parts.scale_columns; ++block) {
          const int64_t at = row * columns + block * block_columns;
          const int64_t scale = (first + row) / block_rows * parts.scale_columns + block;
          formats::decode_fp8({.codes = codes + at,
                               .count = block_columns,
                               .scale = scales[static_cast<size_t>(scale)]},
                              values + at);
        }
      if (base::first_not_finite(DType::bf16, values, rows * columns))
        base::throw_user_error(
            "{}: '{}' has a value that is not finite in bf16. Is the file whole? Download or copy "
            "it again",
            index_.path_of(*parts.codes).string(), linear.spec.name);
      written +=
          writer.write(linear.spec.name, values, rows * columns * base::size_of(DType::bf16));
    }
    return written;
  }

  formats::HfFolder folder_;
  json config_;
  bool is_fp8_;
  models::Stack stack_;
  TensorIndex index_;
  std::vector<Converted> tensors_;
  FolderDequantizePlan plan_;
};

FolderDequantizer::FolderDequantizer(const fs::path& folder)
    : impl_(std::make_unique<const Impl>(folder)) {}
FolderDequantizer::~FolderDequantizer() = default;

const FolderDequantizePlan& FolderDequantizer::plan() const { return impl_->plan(); }

FolderReport FolderDequantizer::write(const fs::path& output) const { return impl_->write(output); }

}  // namespace snug::convert
