// The weights in a GGUF file as those of a Hugging Face folder: names, shapes and order of elements
// are turned back, and quantised values are the ones that llama.cpp computes with. config.json
// follows from the metadata (models/gguf/imported_config.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "convert/source/weight_source.h"
#include "formats/gguf/gguf_file.h"
#include "models/gguf/architecture.h"

namespace snug::convert {

class GgufWeights : public WeightSource {
 public:
  // Reads what stands before the data. Throws UserError for a file that is no model of a family,
  // and for tensors that are missing, have another shape than the metadata say, or do not belong
  // to the model.
  explicit GgufWeights(const std::filesystem::path& path);

  const formats::GgufFile& file() const { return file_; }
  // The type of most of the file's values, for messages: "q4_k".
  formats::GgmlType main_type() const { return main_type_; }

  std::span<const SourceTensor> tensors() const override { return tensors_; }
  const nlohmann::json& config() const override { return config_json_; }
  const std::filesystem::path& companions() const override { return no_folder_; }
  const models::ModelConfig* model() const override { return &config_; }
  int64_t stored_bytes() const override { return stored_bytes_; }
  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const override;
  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const override;
  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const override;

 private:
  // Where elements of a tensor of the folder are in the file.
  struct Origin {
    const formats::GgufTensorInfo* stored = nullptr;
    int64_t first = 0;  // the element of `stored` at which the part begins
    models::GgufPart part;
    float added = 0.0F;
    float factor = 1.0F;
    bool is_rate = false;  // as GgufTensor

    bool is_unchanged(const SourceTensor& tensor) const;
  };
  class Batch;

  void choose_type();
  void match(const models::GgufTensor& expected);
  void match(const models::GgufNumbers& expected);
  void list_tensors();
  void refuse_unknown() const;
  const std::vector<Origin>& origins_of(const SourceTensor& tensor) const;

  formats::GgufFile file_;
  formats::GgmlType main_type_ = formats::GgmlType::f32;
  base::DType dtype_ = base::DType::bf16;  // of the folder that the file stands for
  nlohmann::json config_json_;
  models::ModelConfig config_;
  std::vector<SourceTensor> tensors_;
  std::unordered_map<std::string, std::vector<Origin>> origins_;  // by the folder's names
  std::unordered_map<std::string, float> numbers_;  // of the metadata, by the folder's names
  std::unordered_set<std::string> known_;           // tensors of the file that the model has
  int64_t stored_bytes_ = 0;
  std::filesystem::path no_folder_;
};

}  // namespace snug::convert
