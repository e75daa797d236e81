// Stages: what the adapter changes in its model; which matrices of the file that are; one alpha for
// all; then A and B of one matrix after another.
#include "convert/gguf/export_adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/seconds_since.h"
#include "convert/gguf/gguf_file_name.h"
#include "convert/gguf/modelfile.h"
#include "convert/source/adapter_changes.h"
#include "convert/source/stored_values.h"
#include "formats/folder/directory_transaction.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/gguf_writer.h"
#include "models/gguf/architecture.h"
#include "text/tokenizer/sentencepiece_folder.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using formats::GgmlType;
using models::GgufModel;
using models::GgufPart;
using models::GgufTensor;

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr const char* kMergeInstead =
    "merge it instead (snug merge), or export the merged model: snug export gguf model=DIR "
    "adapter=DIR types=q8_0";

// One matrix of the model's file, or a stack of them, and the adapter of each; nullptr: none.
struct AdaptedMatrix {
  const GgufTensor* tensor = nullptr;
  std::vector<const LoraChange*> changes;  // of each matrix of a stack; of a matrix, one
  std::vector<GgufPart> parts;             // of a matrix: B's rows
  int64_t r = 0;                           // the largest

  int64_t count() const { return std::ssize(changes); }
  int64_t out() const { return tensor->shape[tensor->shape.size() - 2]; }
  int64_t in() const { return tensor->shape.back(); }
  bool is_embedding() const { return tensor->name == kEmbedding; }
  // Of A and B without the stack: (r, in) and (out, r). llama.cpp looks up rows of an embedding's
  // A, (vocab, r), and has its B as (hidden, r).
  std::vector<int64_t> a_shape() const {
    return is_embedding() ? std::vector{out(), r} : std::vector{r, in()};
  }
  std::vector<int64_t> b_shape() const {
    return is_embedding() ? std::vector{in(), r} : std::vector{out(), r};
  }
};

// The rows of B that a part of the model's matrix consists of, in which every row has r elements.
GgufPart rows_of_b(const GgufPart& part, int64_t r) {
  const int64_t columns = part.sizes.back();
  const int64_t unit = part.steps.back() == 1 ? columns : 1;  // else stored as (in, out)
  GgufPart rows;
  rows.source = part.source;
  rows.first = part.first / unit * r;
  rows.sizes.assign(part.sizes.begin(), part.sizes.end() - 1);
  for (size_t axis = 0; axis + 1 < part.steps.size(); ++axis)
    rows.steps.push_back(part.steps[axis] / unit * r);
  rows.sizes.push_back(r);
  rows.steps.push_back(1);
  return rows;
}

// The most that reading the folder's tokenizer takes, in documents of JSON: twice the 3 bytes for
// each of the file that were measured.
int64_t reading_bytes(const fs::path& folder) {
  constexpr int64_t kBytesOfByte = 6;
  const std::string file = text::find_tokenizer_file(folder.string());
  return file.empty() ? 0 : kBytesOfByte * static_cast<int64_t>(fs::file_size(file));
}

// A and B of one matrix in fp32.
struct LoraValues {
  std::vector<float> a;
  std::vector<float> b;
};

}  // namespace

class AdapterExporter::Impl {
 public:
  Impl(const WeightSource& base, const fs::path& adapter, std::span<const GgufMix> mixes,
       const std::string& name, const fs::path& tokenizer)
      : adapter_(adapter),
        name_(name),
        mixes_(mixes.begin(), mixes.end()),
        changes_(base, adapter),
        model_(models::gguf_model(known_model(base), base.config())) {
    for (const GgufMix mix : mixes_)
      if (mix != GgufMix::f32 && mix != GgufMix::f16 && mix != GgufMix::bf16)
        base::throw_user_error(
            "types={}: an adapter's file is f32, f16 or bf16. To have {} of the model with the "
            "adapter merged into it, give the model, too: model=DIR",
            base::word_of(mix), base::word_of(mix));
    refuse_the_inexpressible(base);
    find_matrices(base);
    make_plan();
    add_modelfile(base, tokenizer.empty() ? base.companions() : tokenizer);
  }

  const AdapterExportPlan& plan() const { return plan_; }

  FolderReport write(const fs::path& output) const {
    const auto start = std::chrono::steady_clock::now();
    check_output(output, plan_.result_bytes);
    formats::DirectoryTransaction transaction(output);
    for (size_t i = 0; i < mixes_.size(); ++i)
      write_file(transaction.staging() / plan_.files[i], mixes_[i]);
    base::write_file_atomically(transaction.staging() / "Modelfile", modelfile_);
    // An earlier check found at most an empty folder there.
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
    return {plan_.result_bytes, base::seconds_since(start)};
  }

 private:
  static const models::ModelConfig& known_model(const WeightSource& base) {
    if (base.model() != nullptr) return *base.model();
    base::throw_user_error(
        "{}: snug does not know this model, so the adapter cannot be a GGUF file",
        base.companions().string());
  }

  [[noreturn]] void refuse(const std::string& what) const {
    base::throw_user_error("{}: {}, which no GGUF file of an adapter can express; {}",
                           adapter_.string(), what, kMergeInstead);
  }

  void refuse_the_inexpressible(const WeightSource& base) const {
    if (changes_.own_head())
      refuse("the adapter changes a head that is the model's embedding, or the embedding alone");
    const bool is_tied = known_model(base).tied_embeddings;
    for (const SourceTensor& tensor : base.tensors()) {
      const WeightChange* change = changes_.of(tensor);
      if (change == nullptr) continue;
      const std::string& weight = tensor.weight_name();
      if (change->whole != nullptr)
        refuse(
            fmt::format("it holds '{}' whole (modules_to_save, or a resized vocabulary)", weight));
      if (change->rows != nullptr)
        refuse(fmt::format("it holds rows of '{}' (trainable_token_indices)", weight));
      if (change->lora->magnitude != nullptr)
        refuse(fmt::format("it is DoRA, with a magnitude for each output of '{}'", weight));
      if (is_tied && is_table(weight))
        refuse(fmt::format("it adapts '{}', which is the embedding and the head in one", weight));
    }
  }

  bool is_table(const std::string& weight) const {
    return std::ranges::any_of(model_.tensors, [&](const GgufTensor& tensor) {
      return tensor.name == kEmbedding && tensor.parts.front().source == weight;
    });
  }

  void find_matrices(const WeightSource& base) {
    std::map<std::string, const LoraChange*, std::less<>> by_weight;
    for (const SourceTensor& tensor : base.tensors())
      if (const WeightChange* change = changes_.of(tensor))
        by_weight[tensor.weight_name()] = &*change->lora;
    std::vector<std::string> left;
    left.reserve(by_weight.size());
    for (const auto& [weight, change] : by_weight) left.push_back(weight);
    for (const GgufTensor& tensor : model_.tensors) {
      if (tensor.shape.size() < 2 || tensor.parts.empty()) continue;
      AdaptedMatrix matrix;
      matrix.tensor = &tensor;
      add_changes(by_weight, matrix);
      if (matrix.r == 0) continue;
      for (const GgufPart& part : tensor.parts) std::erase(left, part.source);
      matrices_.push_back(std::move(matrix));
    }
    if (!left.empty())
      refuse(fmt::format("it adapts '{}', which is no matrix of its own in the model's file",
                         fmt::join(left, "', '")));
  }

  static void add_changes(const std::map<std::string, const LoraChange*, std::less<>>& by_weight,
                          AdaptedMatrix& matrix) {
    const GgufTensor& tensor = *matrix.tensor;
    const bool is_stack = tensor.shape.size() == 3;
    for (const GgufPart& part : tensor.parts) {
      const auto found = by_weight.find(part.source);
      const LoraChange* change = found == by_weight.end() ? nullptr : found->second;
      if (change != nullptr) matrix.r = std::max(matrix.r, change->r);
      if (is_stack || matrix.changes.empty()) matrix.changes.push_back(change);
    }
    if (matrix.r == 0 || is_stack || matrix.is_embedding()) return;
    for (const GgufPart& part : tensor.parts) matrix.parts.push_back(rows_of_b(part, matrix.r));
  }

  void make_plan() {
    plan_.architecture = model_.architecture;
    plan_.matrices = std::ssize(matrices_);
    plan_.source_bytes = changes_.files().total_bytes();
    for (const AdaptedMatrix& matrix : matrices_)
      for (const LoraChange* change : matrix.changes)
        if (change != nullptr && plan_.alpha == 0)
          plan_.alpha = static_cast<double>(change->scale) * static_cast<double>(change->r);
    int64_t most = 0;
    for (const AdaptedMatrix& matrix : matrices_) {
      const int64_t elements = matrix.count() * matrix.r * (matrix.in() + matrix.out());
      most = std::max(most, elements);
    }
    plan_.buffer_bytes = most * 3 * int64_t{sizeof(float)};
    for (const GgufMix mix : mixes_) {
      plan_.files.push_back(gguf_file_name(name_, mix, "-LoRA"));
      plan_.result_bytes += formats::gguf_file_bytes(metadata(mix), specs(mix));
    }
  }

  // Of the first file.
  void add_modelfile(const WeightSource& base, const fs::path& tokenizer) {
    Modelfile made = adapter_modelfile(base.companions(), tokenizer, known_model(base).vocab_size,
                                       plan_.files.front());
    modelfile_ = std::move(made.text);
    plan_.notes = std::move(made.notes);
    plan_.result_bytes += std::ssize(modelfile_);
    // Given back before the matrices are read.
    plan_.buffer_bytes = std::max(plan_.buffer_bytes, reading_bytes(tokenizer));
  }

  formats::Metadata metadata(GgufMix mix) const {
    formats::Metadata metadata;
    metadata.set("general.architecture", model_.architecture);
    metadata.set("general.type", std::string("adapter"));
    metadata.set("adapter.type", std::string("lora"));
    metadata.set("general.name", name_);
    metadata.set("adapter.lora.alpha", static_cast<float>(plan_.alpha));
    metadata.set("general.quantization_version", uint32_t{2});
    metadata.set("general.file_type", static_cast<uint32_t>(mix));
    return metadata;
  }

  std::vector<formats::GgufTensorSpec> specs(GgufMix mix) const {
    const GgmlType type = mix == GgufMix::f16    ? GgmlType::f16
                          : mix == GgufMix::bf16 ? GgmlType::bf16
                                                 : GgmlType::f32;
    std::vector<formats::GgufTensorSpec> specs;
    for (const AdaptedMatrix& matrix : matrices_) {
      const auto add = [&](const char* ending, std::vector<int64_t> shape) {
        if (matrix.tensor->shape.size() == 3) shape.insert(shape.begin(), matrix.count());
        specs.push_back({matrix.tensor->name + ending, std::move(shape), type});
      };
      add(".lora_a", matrix.a_shape());
      add(".lora_b", matrix.b_shape());
    }
    return specs;
  }

  void write_file(const fs::path& path, GgufMix mix) const {
    const std::vector<formats::GgufTensorSpec> all = specs(mix);
    formats::GgufWriter writer(path, metadata(mix), all);
    for (size_t i = 0; i < matrices_.size(); ++i) {
      const LoraValues values = values_of(matrices_[i]);
      const auto put = [&](const formats::GgufTensorSpec& spec, const std::vector<float>& floats) {
        std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
        formats::quantise_blocks(spec.type, floats, bytes);
        writer.write(bytes);
      };
      put(all[2 * i], values.a);
      put(all[2 * i + 1], values.b);
    }
    writer.finish();
  }

  // Of all matrices of a stack, where those without an adapter, and ranks that a matrix does not
  // have, are zero.
  LoraValues values_of(const AdaptedMatrix& matrix) const {
    const auto a_size = static_cast<size_t>(matrix.a_shape()[0] * matrix.a_shape()[1]);
    const auto b_size = static_cast<size_t>(matrix.b_shape()[0] * matrix.b_shape()[1]);
    const auto count = static_cast<size_t>(matrix.count());
    LoraValues values{std::vector<float>(count * a_size), std::vector<float>(count * b_size)};
    for (size_t i = 0; i < count; ++i)
      if (matrix.changes[i] != nullptr)
        add_values(matrix, *matrix.changes[i], std::span(values.a).subspan(i * a_size, a_size),
                   std::span(values.b).subspan(i * b_size, b_size));
    return values;
  }

  void add_values(const AdaptedMatrix& matrix, const LoraChange& change, std::span<float> a,
                  std::span<float> b) const {
    std::vector<float> read(static_cast<size_t>(change.a->info->elements()));
    read_values(changes_.files(), *change.a, 0, read);
    const int64_t columns = std::ssize(read) / change.r;
    for (int64_t row = 0; row < change.r; ++row)
      for (int64_t column = 0; column < columns; ++column)
        a[static_cast<size_t>(matrix.is_embedding() ? column * matrix.r + row
                                                    : row * columns + column)] =
            read[static_cast<size_t>(row * columns + column)];
    read.resize(static_cast<size_t>(change.b->info->elements()));
    read_values(changes_.files(), *change.b, 0, read);
    const double theirs = plan_.alpha / static_cast<double>(matrix.r);
    const double rest = static_cast<double>(change.scale) / theirs * matrix.tensor->factor;
    std::vector<float> padded(b.size());
    for (size_t i = 0; i < read.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / change.r;
      const auto column = static_cast<int64_t>(i) % change.r;
      padded[static_cast<size_t>(row * matrix.r + column)] =
          rest == 1.0 ? read[i] : static_cast<float>(static_cast<double>(read[i]) * rest);
    }
    if (matrix.parts.empty()) {
      std::ranges::copy(padded, b.begin());
      return;
    }
    size_t filled = 0;
    for (const GgufPart& part : matrix.parts) {
      const auto elements = static_cast<size_t>(part.elements());
      models::gather_slabs(part, 0, models::slabs_of(part).count, padded, 0,
                           b.subspan(filled, elements));
      filled += elements;
    }
  }

  fs::path adapter_;
  std::string name_;
  std::vector<GgufMix> mixes_;
  AdapterChanges changes_;
  GgufModel model_;
  std::vector<AdaptedMatrix> matrices_;
  std::string modelfile_;
  AdapterExportPlan plan_;
};

AdapterExporter::AdapterExporter(const WeightSource& base, const fs::path& adapter,
                                 std::span<const GgufMix> mixes, const std::string& name,
                                 const fs::path& tokenizer)
    : impl_(std::make_unique<const Impl>(base, adapter, mixes, name, tokenizer)) {}
AdapterExporter::~AdapterExporter() = default;

const AdapterExportPlan& AdapterExporter::plan() const { return impl_->plan(); }

FolderReport AdapterExporter::write(const fs::path& output) const { return impl_->write(output); }

}  // namespace snug::convert
