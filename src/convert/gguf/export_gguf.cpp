// Stages: what the model is in GGUF; the files' headers and the pieces; then one pass in which two
// threads read and quantise pieces, each once for every type that a file wants, and hand the blocks
// to the files in order.
#include "convert/gguf/export_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/seconds_since.h"
#include "convert/folder/ordered_pieces.h"
#include "convert/gguf/folder_tokenizer.h"
#include "convert/gguf/general_keys.h"
#include "convert/gguf/gguf_file_name.h"
#include "convert/gguf/gguf_pieces.h"
#include "convert/gguf/modelfile.h"
#include "convert/gguf/tokenizer_out.h"
#include "formats/folder/directory_transaction.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/gguf_writer.h"
#include "models/gguf/architecture.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using formats::GgmlType;
using formats::GgufTensorSpec;
using formats::GgufWriter;
using formats::Metadata;

constexpr uint32_t kQuantizationVersion = 2;

struct GgufOutput {
  std::string name;  // of the file
  GgufMix mix = GgufMix::f32;
  std::vector<GgufTensorSpec> tensors;
};

const models::ModelConfig& config_of(const WeightSource& source) {
  if (source.model() == nullptr)
    base::throw_user_error(
        "{}: snug does not know the text model of this folder, so it cannot be a GGUF file",
        source.companions().string());
  return *source.model();
}

std::vector<float> values_of(const WeightSource& source, const models::GgufNumbers& numbers) {
  std::vector<float> values;
  values.reserve(numbers.sources.size());
  for (const std::string& name : numbers.sources) {
    const auto found =
        std::ranges::find(source.tensors(), name, [](const auto& t) { return t.weight_name(); });
    if (found == source.tensors().end() || found->elements() != 1)
      base::throw_user_error("the model has no tensor '{}' of one number, which its family has",
                             name);
    source.read(*found, 0, 1, {&values.emplace_back(), 1});
  }
  return values;
}

// llama.cpp loads a model without a tokenizer for programs that give it ids.
std::vector<std::string> add_vocabulary(const fs::path& folder, int64_t vocab_size,
                                        Metadata& metadata) {
  if (has_tokenizer(folder)) return add_tokenizer(folder, vocab_size, metadata);
  metadata.set("tokenizer.ggml.model", std::string("none"));
  return {"the folder has no tokenizer, so programs must give ids of tokens"};
}

int64_t texts_in(const Metadata& metadata, int64_t bytes_of_text, int64_t copies) {
  int64_t bytes = 0;
  for (const auto& [key, value] : metadata.pairs())
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
      for (const std::string& text : *texts) bytes += bytes_of_text + copies * std::ssize(text);
  return bytes;
}
// A text's own size, with what its memory is rounded up by.
int64_t held_bytes(const Metadata& metadata) { return texts_in(metadata, 48, 1); }
// The most that reading a tokenizer takes, in documents of JSON: measured on SmolLM2's, of 49,152
// tokens and as many merges.
int64_t tokenizer_bytes(const Metadata& metadata) { return texts_in(metadata, 320, 6); }

// The types that files have for a tensor, each once.
struct WantedType {
  GgmlType type = GgmlType::f32;
  std::vector<size_t> files;
};
std::vector<WantedType> wanted_types(const std::vector<GgufOutput>& results, size_t tensor) {
  std::vector<WantedType> wanted;
  for (size_t file = 0; file < results.size(); ++file) {
    const GgmlType type = results[file].tensors[tensor].type;
    const auto same = std::ranges::find(wanted, type, &WantedType::type);
    if (same == wanted.end())
      wanted.push_back({type, {file}});
    else
      same->files.push_back(file);
  }
  return wanted;
}

// The largest value that the type holds: fp16, or blocks whose scale is an fp16.
constexpr float kMaxHalf = 65504.0F;
bool has_half_scale(GgmlType type) {
  return type != GgmlType::f32 && type != GgmlType::bf16 && type != GgmlType::mxfp4;
}

void check_range(const GgufTensorSpec& tensor, std::span<const float> values) {
  if (!has_half_scale(tensor.type)) return;
  for (const float value : values)
    if (std::abs(value) > kMaxHalf)
      base::throw_user_error(
          "tensor '{}' has a value of {}, which fp16 does not hold, and with it the type {}; "
          "export types=bf16 or f32",
          tensor.name, value, base::word_of(tensor.type));
}

// The buffers of one thread.
struct GgufWorker {
  std::vector<float> values;
  std::vector<float> source;
  std::vector<std::byte> blocks;  // of all wanted types, one after another
};

}  // namespace

class GgufExporter::Impl {
 public:
  Impl(const WeightSource& source, std::span<const GgufMix> mixes, const std::string& name,
       const fs::path& tokenizer)
      : source_(source),
        tokenizer_(tokenizer.empty() ? source.companions() : tokenizer),
        model_(models::gguf_model(config_of(source), source.config())),
        pieces_(source, model_) {
    add_general_keys(model_, name, source.companions(), metadata_);
    for (const auto& [key, value] : model_.hyper_parameters.pairs()) metadata_.set(key, value);
    for (const models::GgufNumbers& numbers : model_.numbers)
      metadata_.set(numbers.key, values_of(source, numbers));
    plan_.differences = model_.differences;
    for (std::string& note : add_vocabulary(tokenizer_, config_of(source).vocab_size, metadata_))
      plan_.differences.push_back(std::move(note));
    metadata_.set("general.quantization_version", kQuantizationVersion);
    for (const GgufMix mix : mixes) {
      GgufOutput& output = outputs_.emplace_back();
      output.name = gguf_file_name(name, mix);
      output.mix = mix;
      const auto types = mixed_types(mix, model_, config_of(source));
      for (size_t i = 0; i < types.size(); ++i)
        output.tensors.push_back({model_.tensors[i].name, model_.tensors[i].shape, types[i]});
    }
    add_modelfile();
    make_plan();
  }

  const GgufExportPlan& plan() const { return plan_; }

  FolderReport write(const fs::path& output) const {
    const auto start = std::chrono::steady_clock::now();
    check_output(output, plan_.result_bytes);
    formats::DirectoryTransaction transaction(output);
    std::vector<std::unique_ptr<GgufWriter>> writers;
    for (const GgufOutput& file : outputs_)
      writers.push_back(std::make_unique<GgufWriter>(transaction.staging() / file.name,
                                                     metadata_of(file), file.tensors));
    stream(writers);
    for (const auto& writer : writers) writer->finish();
    if (!modelfile_.empty())
      base::write_file_atomically(transaction.staging() / "Modelfile", modelfile_);
    // An earlier check found at most an empty folder there.
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
    return {plan_.result_bytes, base::seconds_since(start)};
  }

 private:
  Metadata metadata_of(const GgufOutput& file) const {
    Metadata metadata = metadata_;
    metadata.set("general.file_type", static_cast<uint32_t>(file.mix));
    return metadata;
  }

  // Of the first file, from which Ollama makes a model.
  void add_modelfile() {
    if (!has_tokenizer(tokenizer_)) return;
    Modelfile made = modelfile(tokenizer_, config_of(source_).vocab_size, outputs_.front().name);
    modelfile_ = std::move(made.text);
    for (std::string& note : made.notes) plan_.differences.push_back(std::move(note));
  }

  void make_plan() {
    plan_.architecture = model_.architecture;
    plan_.tensors = std::ssize(model_.tensors);
    plan_.source_bytes = source_.stored_bytes();
    for (const GgufOutput& output : outputs_) {
      plan_.files.push_back(output.name);
      plan_.result_bytes += formats::gguf_file_bytes(metadata_of(output), output.tensors);
    }
    plan_.result_bytes += std::ssize(modelfile_);
    for (const GgufPiece& piece : pieces_.pieces())
      block_bytes_ = std::max(block_bytes_, bytes_of(piece));
    const GgufPieceSizes& sizes = pieces_.sizes();
    const int64_t streaming =
        int64_t{kPieceWorkers} *
        ((sizes.values + sizes.source) * int64_t{sizeof(float)} + block_bytes_ + sizes.read_bytes);
    // What reading the tokenizer takes is given back before the buffers are made.
    plan_.buffer_bytes =
        std::max(2 * held_bytes(metadata_) + streaming, tokenizer_bytes(metadata_));
  }

  // Of a piece in all types that files want.
  int64_t bytes_of(const GgufPiece& piece) const {
    int64_t bytes = 0;
    for (const WantedType& wanted : wanted_types(outputs_, piece.tensor))
      bytes += formats::stored_bytes(wanted.type, piece.elements);
    return bytes;
  }

  void stream(std::vector<std::unique_ptr<GgufWriter>>& writers) const {
    std::vector<GgufWorker> workers(kPieceWorkers);
    for (GgufWorker& worker : workers) {
      worker.values.resize(static_cast<size_t>(pieces_.sizes().values));
      worker.source.resize(static_cast<size_t>(pieces_.sizes().source));
      worker.blocks.resize(static_cast<size_t>(block_bytes_));
    }
    size_t next = 0;
    OrderedPieces<const GgufPiece*> ordered;
    ordered.run(
        [&]() -> std::optional<const GgufPiece*> {
          if (next == pieces_.pieces().size()) return std::nullopt;
          return &pieces_.pieces()[next++];
        },
        [&](const GgufPiece* piece, size_t worker) { make(*piece, workers[worker]); },
        [&](const GgufPiece* piece, size_t worker) { hand_in(*piece, workers[worker], writers); });
  }

  void make(const GgufPiece& piece, GgufWorker& worker) const {
    const auto values = std::span(worker.values).first(static_cast<size_t>(piece.elements));
    pieces_.read(piece, values, worker.source);
    for_each_type(piece, worker, [&](const WantedType& wanted, std::span<std::byte> blocks) {
      check_range(outputs_[wanted.files.front()].tensors[piece.tensor], values);
      formats::quantise_blocks(wanted.type, values, blocks);
    });
  }

  void hand_in(const GgufPiece& piece, GgufWorker& worker,
               std::vector<std::unique_ptr<GgufWriter>>& writers) const {
    for_each_type(piece, worker, [&](const WantedType& wanted, std::span<std::byte> blocks) {
      for (const size_t file : wanted.files) writers[file]->write(blocks);
    });
  }

  // Calls act(type, its bytes in the worker's blocks).
  template <typename Act>
  void for_each_type(const GgufPiece& piece, GgufWorker& worker, const Act& act) const {
    std::span<std::byte> rest = worker.blocks;
    for (const WantedType& wanted : wanted_types(outputs_, piece.tensor)) {
      const auto bytes = static_cast<size_t>(formats::stored_bytes(wanted.type, piece.elements));
      act(wanted, rest.first(bytes));
      rest = rest.subspan(bytes);
    }
  }

  const WeightSource& source_;
  fs::path tokenizer_;
  models::GgufModel model_;
  GgufPieces pieces_;
  Metadata metadata_;  // of all files, without the type
  std::vector<GgufOutput> outputs_;
  std::string modelfile_;
  GgufExportPlan plan_;
  int64_t block_bytes_ = 0;  // of a piece, at most
};

GgufExporter::GgufExporter(const WeightSource& source, std::span<const GgufMix> mixes,
                           const std::string& name, const fs::path& tokenizer)
    : impl_(std::make_unique<const Impl>(source, mixes, name, tokenizer)) {}
GgufExporter::~GgufExporter() = default;

const GgufExportPlan& GgufExporter::plan() const { return impl_->plan(); }

FolderReport GgufExporter::write(const fs::path& output) const { return impl_->write(output); }

}  // namespace snug::convert
